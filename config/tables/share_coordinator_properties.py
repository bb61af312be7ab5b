"""The properties of the states of share partitions and of the topic `__share_group_state`.

Source: Apache Kafka 4.3's ShareCoordinatorConfig.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.config.property import Property, PropertyType
from barnabas.config.validators import AtLeast, Between

INT = PropertyType.INT

SHARE_GROUPS = "Share groups"

SHARE_COORDINATOR_PROPERTIES: Sequence[Property] = (
    Property(
        "share.coordinator.state.topic.num.partitions",
        INT,
        50,
        "Partitions of __share_group_state when it is created, at the first use of a share group. A share partition's "
        "name decides its partition: adding partitions later makes share groups lose their state.",
        AtLeast(1),
        group=SHARE_GROUPS,
    ),
    Property(
        "share.coordinator.state.topic.segment.bytes",
        INT,
        104857600,
        "segment.bytes of __share_group_state when it is created.",
        AtLeast(1),
        group=SHARE_GROUPS,
    ),
    Property(
        "share.coordinator.snapshot.update.records.per.snapshot",
        INT,
        500,
        "Changes of a share partition's state that are written before the whole state is written again.",
        Between(0, 500),
        group=SHARE_GROUPS,
    ),
    Property(
        "share.coordinator.load.buffer.size",
        INT,
        5242880,
        "Bytes read at a time when the states of share partitions are loaded at start.",
        AtLeast(1),
        group=SHARE_GROUPS,
    ),
    Property(
        "share.coordinator.state.topic.prune.interval.ms",
        INT,
        300000,
        "How often records of __share_group_state that newer ones replace are deleted.",
        AtLeast(1),
        group=SHARE_GROUPS,
    ),
    Property(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        INT,
        300000,
        "How often the states of share partitions that do not change are written again, so that the records before "
        "them can be deleted.",
        AtLeast(1),
        group=SHARE_GROUPS,
    ),
)
