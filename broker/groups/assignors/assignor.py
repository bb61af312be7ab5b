"""What an assignor is given and what it answers. Assignors are pure: the same group gives the same assignment.

Every partition of a topic that somebody subscribes to goes to exactly one member, and only to one that subscribes to
its topic. Source: Kafka's ConsumerGroupPartitionAssignor, GroupSpec.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from barnabas.protocol.groups.consumer_group_values import Partitions


class MemberSpec(NamedTuple):
    """A member: the topics that it reads and that there are, and its target up to now."""

    topics: frozenset[bytes]
    target: Partitions
    instance_id: str | None = None


class GroupSpec(NamedTuple):
    """`members` by id; `partitions`: how many partitions each topic of theirs has."""

    members: Mapping[str, MemberSpec]
    partitions: Mapping[bytes, int]

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members read the same topics."""
        return len({member.topics for member in self.members.values()}) <= 1


class Assignor(Protocol):
    """One way to share out partitions; members ask for it by its name."""

    @property
    def name(self) -> str:
        """As in group.consumer.assignors."""
        ...

    def assign(self, group: GroupSpec) -> dict[str, Partitions]:
        """The new target of every member."""
        ...
