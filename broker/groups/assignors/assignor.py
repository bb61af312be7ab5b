"""Input and output of an assignor. Assignors are pure: the same group gets the same assignment.

Every partition of a subscribed topic goes to exactly one member, which subscribes to the topic. Source: Kafka's
ConsumerGroupPartitionAssignor, GroupSpec.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from barnabas.protocol.groups.consumer_group_values import Partitions


class MemberSpec(NamedTuple):
    """A member: the existing topics that it reads, and its present target."""

    topics: frozenset[bytes]
    target: Partitions
    instance_id: str | None = None


class GroupSpec(NamedTuple):
    """`members` by id. `partitions`: the partition count of each topic that a member reads."""

    members: Mapping[str, MemberSpec]
    partitions: Mapping[bytes, int]

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members read the same topics."""
        return len({member.topics for member in self.members.values()}) <= 1


class Assignor(Protocol):
    """One way to assign partitions; members name it."""

    @property
    def name(self) -> str:
        """Its name in group.consumer.assignors."""
        ...

    def assign(self, group: GroupSpec) -> dict[str, Partitions]:
        """Return the new target of every member."""
        ...
