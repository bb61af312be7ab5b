"""A consumer group (KIP-848): what its records say. Nothing but `replay` changes it, at a start and at run time alike.

    group epoch        grows with every change that asks for a new assignment: a member came, left or reads other topics
    assignment epoch   that of the target assignment, which says what every member shall have
    member epoch       how far a member has come: it goes to the assignment epoch once it gave up what it shall not have

A partition belongs to at most one member: who shall have it waits until who had it has given it up (`owners`). The
deadlines are the group's own, and not in its records: each member's session, and its time to give up partitions.
Source: Kafka's ConsumerGroup, ModernGroup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Final

from barnabas.broker.groups.classic.timers import GroupTimers, TimerKey, session_of
from barnabas.broker.groups.consumer.member import ConsumerGroupMember, MemberState
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.groups.consumer_group_keys import (
    ConsumerGroupKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    CurrentMemberAssignmentKey,
    RegularExpressionKey,
    TargetAssignmentMemberKey,
    TargetAssignmentMetadataKey,
)
from barnabas.protocol.groups.consumer_group_values import (
    ConsumerGroupMetadataValue,
    ConsumerGroupValue,
    CurrentMemberAssignmentValue,
    MemberMetadataValue,
    PartitionEpochs,
    Partitions,
    RegularExpressionValue,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
)

if TYPE_CHECKING:
    from barnabas.broker.groups.classic.core import GroupClock

GONE_EPOCH: Final = -1

REBALANCE: Final = "rebalance"
"""The timer of a member that has partitions to give up."""
JOIN: Final = "join"
"""The timer of a classic member that was told to join again."""
SYNC: Final = "sync"
"""The timer of a classic member that joined and has not synced."""


class ConsumerGroupState(Enum):
    """By Kafka's names."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ConsumerGroup:
    """One group. `is_checked`: its topics are those that its epoch was made for; `is_resolved`: its expressions saw
    all topics that there are. A change of a topic takes them back, and the next heartbeat looks.
    """

    __slots__ = (
        "assignment_epoch",
        "assignment_ms",
        "epoch",
        "group_id",
        "has_partition_metadata",
        "is_checked",
        "is_resolved",
        "members",
        "metadata_hash",
        "owners",
        "regexes",
        "static_ids",
        "target",
        "timers",
    )

    def __init__(self, group_id: str, clock: GroupClock) -> None:
        self.group_id = group_id
        self.is_checked = False
        self.is_resolved = False
        self.epoch = 1
        self.metadata_hash = 0
        self.assignment_epoch = 0
        self.assignment_ms = 0
        self.has_partition_metadata = False
        self.members: dict[str, ConsumerGroupMember] = {}
        self.static_ids: dict[str, str] = {}
        self.target: dict[str, Partitions] = {}
        self.owners: dict[tuple[bytes, int], str] = {}
        self.regexes: dict[str, RegularExpressionValue] = {}
        self.timers = GroupTimers(clock.now)

    # --- what it is

    @property
    def state(self) -> ConsumerGroupState:
        """Now."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    @property
    def wake_at(self) -> float:
        """When its first deadline may have passed."""
        return self.timers.wake_at

    def member(self, member_id: str) -> ConsumerGroupMember:
        """Raises BrokerError UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {self.group_id!r} has no member {member_id!r}")
        return member

    def static_member(self, instance_id: str | None) -> ConsumerGroupMember | None:
        """The member of that instance."""
        member_id = None if instance_id is None else self.static_ids.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def is_subscribed(self, topic: str) -> bool:
        """Whether a member reads that topic."""
        return any(topic in topics_of(member, self.regexes) for member in self.members.values())

    def preferred_assignor(self, members: Iterable[ConsumerGroupMember], default: str) -> str:
        """The one that most of `members` ask for."""
        votes = Counter(member.assignor for member in members if member.assignor is not None)
        return votes.most_common(1)[0][0] if votes else default

    @property
    def classic_members(self) -> int:
        """How many speak the classic protocol."""
        return sum(member.classic is not None for member in self.members.values())

    # --- deadlines

    def extend_session(self, member_id: str, timeout_ms: int) -> None:
        """The member was heard of now."""
        self.timers.schedule(session_of(member_id), timeout_ms)

    def begin_session(self, member_id: str, timeout_ms: int) -> None:
        """As `extend_session`, of one that has none yet."""
        if session_of(member_id) not in self.timers:
            self.extend_session(member_id, timeout_ms)

    def cancel_timers(self, member_id: str) -> None:
        """The member is not here any more."""
        for key in timers_of(member_id):
            self.timers.cancel(key)

    # --- replay

    def replay(self, key: ConsumerGroupKey, value: ConsumerGroupValue | None) -> None:
        """Make a record of the group state; without a value it takes back what it said."""
        match key, value:
            case ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue():
                self.epoch, self.metadata_hash = value
            case ConsumerGroupPartitionMetadataKey(), _:
                self.has_partition_metadata = value is not None
            case ConsumerGroupMemberMetadataKey(), MemberMetadataValue():
                old = self.members.get(key.member_id, ConsumerGroupMember(key.member_id))
                self._put(old.with_metadata(value))
            case ConsumerGroupMemberMetadataKey(), None:
                self._remove(key.member_id)
            case TargetAssignmentMetadataKey(), TargetAssignmentMetadataValue():
                self.assignment_epoch, self.assignment_ms = value
            case TargetAssignmentMetadataKey(), None:
                self.assignment_epoch, self.assignment_ms = -1, 0
            case TargetAssignmentMemberKey(), TargetAssignmentMemberValue():
                self.target[key.member_id] = value.partitions
            case TargetAssignmentMemberKey(), None:
                self.target.pop(key.member_id, None)
            case CurrentMemberAssignmentKey(), CurrentMemberAssignmentValue():
                old = self.members.get(key.member_id, ConsumerGroupMember(key.member_id))
                self._put(old.with_current(value))
                self._time_revocation(self.members[key.member_id])
            case CurrentMemberAssignmentKey(), None:
                self._forget_partitions(key.member_id)
            case RegularExpressionKey(), RegularExpressionValue():
                self.regexes[key.regular_expression] = value
            case RegularExpressionKey(), None:
                self.regexes.pop(key.regular_expression, None)

    def _put(self, member: ConsumerGroupMember) -> None:
        member_id = member.member_id
        old = self.members.get(member_id)
        if old is not None:
            self._release(old)
        self.members[member_id] = member
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member_id
        for topics in (member.assigned, member.pending_revocation):
            for partition in _pairs(topics):
                self.owners[partition] = member_id

    def _remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._release(member)
        if member.instance_id is not None and self.static_ids.get(member.instance_id) == member_id:
            del self.static_ids[member.instance_id]
        self.cancel_timers(member_id)

    def _forget_partitions(self, member_id: str) -> None:
        member = self.members.get(member_id)
        if member is not None:
            self._put(
                replace(
                    member,
                    member_epoch=GONE_EPOCH,
                    previous_member_epoch=GONE_EPOCH,
                    assigned={},
                    pending_revocation={},
                )
            )

    def _release(self, member: ConsumerGroupMember) -> None:
        for topics in (member.assigned, member.pending_revocation):
            for partition in _pairs(topics):
                if self.owners.get(partition) == member.member_id:
                    del self.owners[partition]

    def _time_revocation(self, member: ConsumerGroupMember) -> None:
        key = (REBALANCE, member.member_id)
        if member.classic is None and member.state == MemberState.UNREVOKED_PARTITIONS:
            self.timers.schedule(key, member.rebalance_timeout_ms)
        else:
            self.timers.cancel(key)


def timers_of(member_id: str) -> tuple[TimerKey, ...]:
    """The keys of all deadlines that a member may have."""
    return (session_of(member_id), (REBALANCE, member_id), (JOIN, member_id), (SYNC, member_id))


def topics_of(member: ConsumerGroupMember, regexes: Mapping[str, RegularExpressionValue]) -> frozenset[str]:
    """The topics that a member reads, whether they are there or not."""
    resolved = regexes.get(member.topic_regex) if member.topic_regex else None
    return member.topic_names if resolved is None else member.topic_names.union(resolved.topics)


def _pairs(topics: PartitionEpochs) -> Iterable[tuple[bytes, int]]:
    return ((topic_id, number) for topic_id, epochs in topics.items() for number in epochs)
