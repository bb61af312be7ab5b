"""The properties of share groups (KIP-932) that concern their members and their records in flight.

Source: Apache Kafka 4.3's GroupCoordinatorConfig and ShareGroupConfig.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.config.property import Property, PropertyType
from barnabas.config.validators import AtLeast, Between, ListOf

INT, LIST = PropertyType.INT, PropertyType.LIST

SHARE_GROUPS: Final = "Share groups"

_ASSIGNOR_CLASS: Final = "org.apache.kafka.coordinator.group.assignor.SimpleAssignor"


def _bounds(
    name: str, lowest: tuple[int, AtLeast | Between], highest: tuple[int, AtLeast | Between]
) -> Sequence[Property]:
    """Return the properties that bound a group's own config of that name."""
    return (
        Property(
            f"group.share.min.{name}",
            INT,
            lowest[0],
            f"Lowest share.{name} that may be set for a group.",
            lowest[1],
            group=SHARE_GROUPS,
        ),
        Property(
            f"group.share.max.{name}",
            INT,
            highest[0],
            f"Highest share.{name} that may be set for a group.",
            highest[1],
            group=SHARE_GROUPS,
        ),
    )


SHARE_GROUP_PROPERTIES: Sequence[Property] = (
    Property(
        "group.share.max.size",
        INT,
        200,
        "Most members of a share group.",
        Between(1, 1000),
        group=SHARE_GROUPS,
    ),
    Property(
        "group.share.session.timeout.ms",
        INT,
        45000,
        "How long a member of a share group may go without a heartbeat before it is removed.",
        AtLeast(1),
        group=SHARE_GROUPS,
    ),
    *_bounds("session.timeout.ms", (45000, AtLeast(1)), (60000, AtLeast(1))),
    Property(
        "group.share.heartbeat.interval.ms",
        INT,
        5000,
        "Heartbeat interval of the members of share groups. A change of the group reaches a member with its next "
        "heartbeat.",
        AtLeast(1),
        group=SHARE_GROUPS,
    ),
    *_bounds("heartbeat.interval.ms", (5000, AtLeast(1)), (15000, AtLeast(1))),
    Property(
        "group.share.assignment.interval.ms",
        INT,
        0,
        "Shortest time between two assignments of a share group. With Kafka's default of 1000 a member that joins "
        "sooner gets its partitions with a later heartbeat, in exchange for fewer assignments when many start at the "
        "same time.",
        AtLeast(0),
        group=SHARE_GROUPS,
    ),
    *_bounds("assignment.interval.ms", (0, AtLeast(0)), (15000, AtLeast(0))),
    Property(
        "group.share.assignors",
        LIST,
        ("simple",),
        "The assignor of share groups; simple is the only one.",
        ListOf(("simple", _ASSIGNOR_CLASS), may_be_empty=False),
        group=SHARE_GROUPS,
    ),
    Property(
        "group.share.initialize.retry.interval.ms",
        INT,
        30000,
        "How long after it began the initialization of a share partition's state is repeated, if it has not ended.",
        AtLeast(1),
        group=SHARE_GROUPS,
    ),
    Property(
        "group.share.record.lock.duration.ms",
        INT,
        30000,
        "How long a consumer has a record that it got. If it does not acknowledge the record, it is delivered again.",
        Between(1000, 3600000),
        group=SHARE_GROUPS,
    ),
    *_bounds("record.lock.duration.ms", (15000, Between(1000, 30000)), (60000, Between(30000, 3600000))),
    Property(
        "group.share.delivery.count.limit",
        INT,
        5,
        "How often a record is delivered at most; after that it is archived as if it had been rejected.",
        Between(2, 10),
        group=SHARE_GROUPS,
    ),
    *_bounds("delivery.count.limit", (2, Between(2, 5)), (10, Between(5, 25))),
    Property(
        "group.share.partition.max.record.locks",
        INT,
        2000,
        "Most records of a partition that are in flight in a share group at the same time.",
        Between(100, 10000),
        group=SHARE_GROUPS,
    ),
    *_bounds("partition.max.record.locks", (100, Between(100, 2000)), (4000, Between(2000, 10000))),
    Property(
        "group.share.max.share.sessions",
        INT,
        2000,
        "Most share sessions of this broker: each consumer of a share group has one.",
        AtLeast(1),
        group=SHARE_GROUPS,
    ),
)
