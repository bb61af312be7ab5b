"""Properties of consumer groups: their offsets and the topic that these are kept in.

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
"""As Kafka before 4.0 names them."""

GROUP_PROPERTIES: Sequence[Property] = (
    Property(
        "group.initial.rebalance.delay.ms",
        INT,
        0,
        "How long the first member of an empty group waits for others before its group is formed. Kafka's default is "
        "3000: every start of a consumer waits for it, in exchange for fewer rebalances where many start at once.",
        AtLeast(0),
        group=GROUPS,
    ),
    Property(
        "group.min.session.timeout.ms",
        INT,
        6000,
        "The shortest session.timeout.ms that a member may ask for.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "group.max.session.timeout.ms",
        INT,
        1800000,
        "The longest session.timeout.ms that a member may ask for.",
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
        ("classic", "consumer"),
        "The protocols of groups that are served: classic, and consumer for the newer one (KIP-848). Classic ones are "
        "always served; share and streams are accepted and not served.",
        ListOf(("classic", "consumer", "share", "streams")),
        group=GROUPS,
    ),
    Property(
        "group.consumer.session.timeout.ms",
        INT,
        45000,
        "How long a member of a consumer group may be silent before it is removed.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "group.consumer.heartbeat.interval.ms",
        INT,
        5000,
        "How often members of consumer groups are told to send a heartbeat: a change of the group reaches them with "
        "their next one.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "group.consumer.assignment.interval.ms",
        INT,
        0,
        "Least time between two assignments of one consumer group. Kafka's default is 1000: a member that comes sooner "
        "waits for its partitions until a heartbeat after that, in exchange for fewer assignments where many start at "
        "once.",
        AtLeast(0),
        group=GROUPS,
    ),
    Property(
        "group.consumer.min.session.timeout.ms",
        INT,
        45000,
        "The lowest consumer.session.timeout.ms that may be set for a group.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "group.consumer.max.session.timeout.ms",
        INT,
        60000,
        "The highest consumer.session.timeout.ms that may be set for a group.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "group.consumer.min.heartbeat.interval.ms",
        INT,
        5000,
        "The lowest consumer.heartbeat.interval.ms that may be set for a group.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "group.consumer.max.heartbeat.interval.ms",
        INT,
        15000,
        "The highest consumer.heartbeat.interval.ms that may be set for a group.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "group.consumer.min.assignment.interval.ms",
        INT,
        0,
        "The lowest consumer.assignment.interval.ms that may be set for a group.",
        AtLeast(0),
        group=GROUPS,
    ),
    Property(
        "group.consumer.max.assignment.interval.ms",
        INT,
        15000,
        "The highest consumer.assignment.interval.ms that may be set for a group.",
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
        "The assignors that members of consumer groups may ask for; the first one is for groups whose members ask for "
        "none.",
        ListOf(("uniform", "range", *_ASSIGNOR_CLASSES), may_be_empty=False),
        group=GROUPS,
    ),
    Property(
        "group.consumer.migration.policy",
        STRING,
        "bidirectional",
        "Whether a group with members changes its protocol: upgrade, from classic to consumer when the first member "
        "of the consumer protocol comes; downgrade, back when its last one goes; bidirectional or disabled. A group "
        "without members always may.",
        OneOf(("bidirectional", "upgrade", "downgrade", "disabled")),
        group=GROUPS,
    ),
    Property(
        "offset.metadata.max.bytes",
        INT,
        4096,
        "Most characters of metadata that a client may keep with a committed offset.",
        group=GROUPS,
    ),
    Property(
        "offsets.topic.num.partitions",
        INT,
        50,
        "Partitions of __consumer_offsets when it is created, at the first use of a group. A group belongs to one of "
        "them by its name: adding partitions later makes groups lose their offsets.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "offsets.topic.segment.bytes",
        INT,
        104857600,
        "segment.bytes of __consumer_offsets when it is created: small enough that compaction comes soon, which is "
        "what keeps a start short.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "offsets.topic.compression.codec",
        INT,
        0,
        "Compression of the broker's batches in __consumer_offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
        Between(0, _NEWEST_CODEC),
        group=GROUPS,
    ),
    Property(
        "offsets.load.buffer.size",
        INT,
        5242880,
        "Bytes that are read at a time when committed offsets are loaded at start.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "offsets.retention.minutes",
        INT,
        10080,
        "How long committed offsets are kept: of a group with members that left, since the last one left; of a "
        "consumer without a group membership, since its last commit. Then a tombstone is written.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "offsets.retention.check.interval.ms",
        LONG,
        600000,
        "How often offsets are looked for that offsets.retention.minutes has expired.",
        AtLeast(1),
        group=GROUPS,
    ),
    Property(
        "metrics.group.lag.enable",
        BOOLEAN,
        False,
        "Whether /metrics says how far each group is behind in each partition. Right for some thousand partitions with "
        "commits; beyond, each scrape holds requests up (see docs/metrics.md). Barnabas's own.",
        group=GROUPS,
    ),
)
