"""The properties of consumer groups, their committed offsets and the topic of the offsets.

Source: Apache Kafka 4.3's GroupCoordinatorConfig.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.config.property import Property, PropertyType
from barnabas.config.validators import AtLeast, Between, ListOf, OneOf

BOOLEAN, INT, LONG = PropertyType.BOOLEAN, PropertyType.INT, PropertyType.LONG
LIST, STRING = PropertyType.LIST, PropertyType.STRING

GROUPS = "Consumer groups"

_NEWEST_CODEC = 4

_ASSIGNOR_CLASSES = tuple(
    f"org.apache.kafka.coordinator.group.assignor.{name}Assignor" for name in ("Uniform", "Range")
)
"""Their names in Kafka before 4.0."""

GROUP_PROPERTIES: Sequence[Property] = (
    Property(
        "group.initial.rebalance.delay.ms",
        INT,
        0,
        "How long the first member of an empty group waits for others to join. Kafka's default of 3000 delays every "
        "start of a consumer, in exchange for fewer rebalances when many start together.",
        AtLeast(0),
        group=GROUPS,
    ),
    Property(
        "group.min.session.timeout.ms",
        INT,
        6000,
        "Lowest session.timeout.ms that a member may request.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "group.max.session.timeout.ms",
        INT,
        1800000,
        "Highest session.timeout.ms that a member may request.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "group.max.size",
        INT,
        2147483647,
        "Most members of a group.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "group.coordinator.rebalance.protocols",
        LIST,
        ("classic", "consumer", "streams"),
        "The served group protocols: classic, consumer for the newer one (KIP-848), and streams for Kafka Streams "
        "(KIP-1071), which needs streams.version 1, too. Classic is always served; share is accepted without effect, "
        "because the feature share.version decides about share groups.",
        ListOf(("classic", "consumer", "share", "streams"), may_be_empty=False),
        group=GROUPS,
    ),
    Property(
        "group.consumer.session.timeout.ms",
        INT,
        45000,
        "How long a member of a consumer group may go without a heartbeat before it is removed.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "group.consumer.heartbeat.interval.ms",
        INT,
        5000,
        "Heartbeat interval of the members of consumer groups. A change of the group reaches a member with its next "
        "heartbeat.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "group.consumer.assignment.interval.ms",
        INT,
        0,
        "Shortest time between two assignments of a consumer group. With Kafka's default of 1000 a member that joins "
        "sooner gets its partitions with a later heartbeat, in exchange for fewer assignments when many start at the "
        "same time.",
        AtLeast(0),
        group=GROUPS,
    ),
    Property(
        "group.consumer.min.session.timeout.ms",
        INT,
        45000,
        "Lowest consumer.session.timeout.ms that may be set for a group.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "group.consumer.max.session.timeout.ms",
        INT,
        60000,
        "Highest consumer.session.timeout.ms that may be set for a group.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "group.consumer.min.heartbeat.interval.ms",
        INT,
        5000,
        "Lowest consumer.heartbeat.interval.ms that may be set for a group.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "group.consumer.max.heartbeat.interval.ms",
        INT,
        15000,
        "Highest consumer.heartbeat.interval.ms that may be set for a group.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "group.consumer.min.assignment.interval.ms",
        INT,
        0,
        "Lowest consumer.assignment.interval.ms that may be set for a group.",
        AtLeast(0),
        group=GROUPS,
    ),
    Property(
        "group.consumer.max.assignment.interval.ms",
        INT,
        15000,
        "Highest consumer.assignment.interval.ms that may be set for a group.",
        AtLeast(0),
        group=GROUPS,
    ),
    Property(
        "group.consumer.max.size",
        INT,
        2147483647,
        "Most members of a consumer group.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "group.consumer.assignors",
        LIST,
        ("uniform", "range"),
        "Assignors that members of consumer groups may request; the first one serves groups without a request.",
        ListOf(("uniform", "range", *_ASSIGNOR_CLASSES), may_be_empty=False),
        group=GROUPS,
    ),
    Property(
        "group.consumer.migration.policy",
        STRING,
        "bidirectional",
        "Whether a group with members changes its protocol. upgrade: from classic to consumer when the first member "
        "of the consumer protocol joins; downgrade: back when the last one leaves; bidirectional: both; disabled: "
        "neither. A group without members may always change.",
        OneOf(("bidirectional", "upgrade", "downgrade", "disabled"), in_any_case=True),
        group=GROUPS,
    ),
    Property(
        "group.streams.session.timeout.ms",
        INT,
        45000,
        "How long a member of a streams group may go without a heartbeat before it is removed.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "group.streams.heartbeat.interval.ms",
        INT,
        5000,
        "Heartbeat interval of the members of streams groups. A change of the group reaches a member with "
        "its next heartbeat.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "group.streams.num.standby.replicas",
        INT,
        0,
        "Standby tasks of each stateful task of a streams group: copies of its state on other processes.",
        AtLeast(0),
        group=GROUPS,
    ),
    Property(
        "group.streams.initial.rebalance.delay.ms",
        INT,
        3000,
        "How long the first assignment of a streams group waits for more members, so that tasks move less.",
        AtLeast(0),
        group=GROUPS,
    ),
    Property(
        "group.streams.assignment.interval.ms",
        INT,
        1000,
        "Shortest time between two assignments of a streams group.",
        AtLeast(0),
        group=GROUPS,
    ),
    Property(
        "group.streams.min.session.timeout.ms",
        INT,
        45000,
        "Lowest streams.session.timeout.ms that may be set for a group.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "group.streams.max.session.timeout.ms",
        INT,
        60000,
        "Highest streams.session.timeout.ms that may be set for a group.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "group.streams.min.heartbeat.interval.ms",
        INT,
        5000,
        "Lowest streams.heartbeat.interval.ms that may be set for a group.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "group.streams.max.heartbeat.interval.ms",
        INT,
        15000,
        "Highest streams.heartbeat.interval.ms that may be set for a group.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "group.streams.min.assignment.interval.ms",
        INT,
        0,
        "Lowest streams.assignment.interval.ms that may be set for a group.",
        AtLeast(0),
        group=GROUPS,
    ),
    Property(
        "group.streams.max.assignment.interval.ms",
        INT,
        15000,
        "Highest streams.assignment.interval.ms that may be set for a group.",
        AtLeast(0),
        group=GROUPS,
    ),
    Property(
        "group.streams.max.standby.replicas",
        INT,
        2,
        "Highest streams.num.standby.replicas that may be set for a group.",
        AtLeast(0),
        group=GROUPS,
    ),
    Property(
        "group.streams.max.size",
        INT,
        2147483647,
        "Most members of a streams group.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "offset.metadata.max.bytes",
        INT,
        4096,
        "Most characters of metadata that a client may store with a committed offset.",
        group=GROUPS,
    ),
    Property(
        "offsets.topic.num.partitions",
        INT,
        50,
        "Partitions of __consumer_offsets when it is created, at the first use of a group. A group's name decides its "
        "partition: adding partitions later makes groups lose their offsets.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "offsets.topic.segment.bytes",
        INT,
        104857600,
        "segment.bytes of __consumer_offsets when it is created. Small segments are compacted sooner, which keeps the "
        "broker's start short.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "offsets.topic.compression.codec",
        INT,
        0,
        "Compression of the batches in __consumer_offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
        Between(0, _NEWEST_CODEC),
        group=GROUPS,
    ),
    Property(
        "offsets.load.buffer.size",
        INT,
        5242880,
        "Bytes read at a time when committed offsets are loaded at start.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "offsets.retention.minutes",
        INT,
        10080,
        "How long committed offsets are kept after the last member left the group, or after the last commit of a "
        "consumer without group membership. Then a tombstone is written.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "offsets.retention.check.interval.ms",
        LONG,
        600000,
        "How often expired committed offsets are removed.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "metrics.group.lag.enable",
        BOOLEAN,
        False,
        "Export the lag of each group in each partition on /metrics. Suitable for a few thousand partitions with "
        "commits; with more, each scrape delays requests (see docs/metrics.md). Not in Kafka.",
        group=GROUPS,
    ),
)
