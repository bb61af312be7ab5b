"""A consumer group (KIP-848) as its records describe it. Only `replay` changes it, at a start and at run time alike.

    group epoch        grows with every change that needs a new assignment: a member joins, leaves or reads other topics
    assignment epoch   the group epoch of the target assignment, which gives every member its partitions
    member epoch       how far a member has come: it enters the assignment epoch once it gave up what it has to

A partition belongs to at most one member: its next owner waits until the present one has given it up (`owners`). The
deadlines are not in the records: each member's session, and its time to give up partitions.
Source: Kafka's ConsumerGroup, ModernGroup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from barnabas.broker.groups.consumer.epochs import commit_check, stale_epoch
from barnabas.broker.groups.consumer.member import ConsumerGroupMember, MemberState
from barnabas.broker.groups.consumer.records import (
    current_record,
    epoch_record,
    member_record,
    partition_metadata_tombstone,
    regex_record,
    target_epoch_record,
    target_record,
)
from barnabas.broker.groups.group import SINCE_COMMIT, CommitCheck, GroupState, GroupType, OffsetExpiry
from barnabas.broker.groups.log.records import GroupRecord
from barnabas.broker.groups.timers import GroupTimers, session_of
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.groups.consumer_group_values import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
    ConsumerGroupValue,
    PartitionEpochs,
    Partitions,
)
from barnabas.protocol.groups.consumer_protocol import CONSUMER
from barnabas.protocol.groups.keys import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from barnabas.protocol.messages.groups.join_group import NO_MEMBER_ID
from barnabas.protocol.messages.groups.offset_commit import NO_GENERATION

if TYPE_CHECKING:
    from barnabas.broker.groups.timers import GroupClock

GONE_EPOCH: Final = -1

REBALANCE: Final = "rebalance"
"""The timer of a member that has partitions to give up."""
JOIN: Final = "join"
"""The timer of a classic member that was told to join again."""
SYNC: Final = "sync"
"""The timer of a classic member that joined and has not synced."""


class ConsumerGroup:
    """One group.

    is_checked    its epoch was computed for its topics as they are now
    is_resolved   its expressions were matched against all topics that exist now

    A change of a topic resets both, and the next heartbeat looks at the topics again.
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

    group_type = GroupType.CONSUMER
    protocol_type = CONSUMER

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
        self.regexes: dict[str, ConsumerGroupRegularExpressionValue] = {}
        self.timers = GroupTimers(clock.now)

    @property
    def state(self) -> GroupState:
        """Empty, Assigning, Reconciling or Stable."""
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return GroupState.STABLE
        return GroupState.RECONCILING

    # --- members

    def member(self, member_id: str) -> ConsumerGroupMember:
        """Return the member. Raises BrokerError UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {self.group_id!r} has no member {member_id!r}")
        return member

    def static_member(self, instance_id: str | None) -> ConsumerGroupMember | None:
        """Return the member with that instance id, if there is one."""
        member_id = None if instance_id is None else self.static_ids.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def preferred_assignor(self, members: Iterable[ConsumerGroupMember], default: str) -> str:
        """Return the assignor that most of `members` name; `default` if none does."""
        votes = Counter(member.assignor for member in members if member.assignor is not None)
        return votes.most_common(1)[0][0] if votes else default

    @property
    def classic_members(self) -> int:
        """The number of members that use the classic protocol."""
        return sum(member.classic is not None for member in self.members.values())

    # --- deadlines

    @property
    def wake_at(self) -> float:
        """No deadline is before this time."""
        return self.timers.wake_at

    def extend_session(self, member_id: str, timeout_ms: int) -> None:
        """Restart the member's session timeout."""
        self.timers.schedule(session_of(member_id), timeout_ms)

    def begin_session(self, member_id: str, timeout_ms: int) -> None:
        """Start the member's session timeout, unless it runs already."""
        if session_of(member_id) not in self.timers:
            self.extend_session(member_id, timeout_ms)

    # --- committed offsets and deletion (see Group)

    def validate_offset_commit(
        self, member_id: str, group_instance_id: str | None, generation: int, *, knows_member_epochs: bool
    ) -> CommitCheck | None:
        """Return what remains to be checked of each partition; None if nothing does. Raises BrokerError."""
        if generation < 0 and not self.members:
            return None
        member = self.member(member_id)
        if member.classic is None and not knows_member_epochs:
            raise BrokerError(
                ErrorCode.UNSUPPORTED_VERSION, "members of the consumer protocol commit with version 9 or later"
            )
        return commit_check(member, generation)

    def validate_transactional_commit(
        self, member_id: str, group_instance_id: str | None, generation: int
    ) -> CommitCheck | None:
        """As `validate_offset_commit`; a request that names no member may always commit."""
        if generation < 0 and not self.members:
            return None
        if generation == NO_GENERATION and member_id == NO_MEMBER_ID and group_instance_id is None:
            return None
        return commit_check(self.member(member_id), generation)

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise BrokerError for a wrong member epoch. A request without a member id may always fetch."""
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.member_epoch:
            raise stale_epoch(
                member, f"epoch {member_epoch} is not {member.member_epoch}, that of member {member_id!r}"
            )

    def validate_offset_delete(self) -> None:
        """Allow it: the topics of all members are known."""

    def validate_delete(self) -> None:
        """Raise BrokerError NON_EMPTY_GROUP for a group with members."""
        if self.members:
            raise BrokerError(
                ErrorCode.NON_EMPTY_GROUP, f"group {printable(self.group_id)} has {len(self.members)} members"
            )

    def is_subscribed(self, topic: str) -> bool:
        """Return whether a member reads the topic."""
        return any(topic in topics_of(member, self.regexes) for member in self.members.values())

    def offset_expiry(self) -> OffsetExpiry:
        """Return that offsets age since their commit; those of subscribed topics do not expire anyway."""
        return SINCE_COMMIT

    # --- records

    def records(self) -> list[GroupRecord]:
        """Return the records of the whole group."""
        group_id, members = self.group_id, self.members.values()
        return [
            *(member_record(group_id, member) for member in members),
            epoch_record(group_id, self.epoch, self.metadata_hash),
            *(target_record(group_id, each.member_id, self.target.get(each.member_id, {})) for each in members),
            target_epoch_record(group_id, self.assignment_epoch, self.assignment_ms),
            *(current_record(group_id, member) for member in members),
            *(regex_record(group_id, regex, value) for regex, value in self.regexes.items()),
        ]

    def tombstones(self) -> list[GroupRecord]:
        """Return the records that delete the group with its members. Kafka's replay needs this order."""
        group_id = self.group_id
        ids = list(dict.fromkeys((*self.members, *self.target)))
        return [
            *(GroupRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id, each), None) for each in ids),
            *(GroupRecord(ConsumerGroupTargetAssignmentMemberKey(group_id, each), None) for each in ids),
            GroupRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id), None),
            *(GroupRecord(ConsumerGroupMemberMetadataKey(group_id, each), None) for each in ids),
            *(regex_record(group_id, regex, None) for regex in self.regexes),
            partition_metadata_tombstone(group_id),
            GroupRecord(ConsumerGroupMetadataKey(group_id), None),
        ]

    def replay(self, key: ConsumerGroupKey, value: ConsumerGroupValue | None) -> None:
        """Apply one record of the group; a tombstone undoes the record of its key."""
        match key, value:
            case ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue():
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
            case ConsumerGroupPartitionMetadataKey(), _:
                self.has_partition_metadata = value is not None
            case ConsumerGroupMemberMetadataKey(), ConsumerGroupMemberMetadataValue():
                old = self.members.get(key.member_id, ConsumerGroupMember(key.member_id))
                self._put(old.with_metadata(value))
            case ConsumerGroupMemberMetadataKey(), None:
                self._remove(key.member_id)
            case ConsumerGroupTargetAssignmentMetadataKey(), ConsumerGroupTargetAssignmentMetadataValue():
                self.assignment_epoch, self.assignment_ms = value.assignment_epoch, value.assignment_timestamp
            case ConsumerGroupTargetAssignmentMetadataKey(), None:
                self.assignment_epoch, self.assignment_ms = -1, 0
            case ConsumerGroupTargetAssignmentMemberKey(), ConsumerGroupTargetAssignmentMemberValue():
                self.target[key.member_id] = value.partitions
            case ConsumerGroupTargetAssignmentMemberKey(), None:
                self.target.pop(key.member_id, None)
            case ConsumerGroupCurrentMemberAssignmentKey(), ConsumerGroupCurrentMemberAssignmentValue():
                old = self.members.get(key.member_id, ConsumerGroupMember(key.member_id))
                self._put(old.with_current(value))
                self._time_revocation(self.members[key.member_id])
            case ConsumerGroupCurrentMemberAssignmentKey(), None:
                self._forget_partitions(key.member_id)
            case ConsumerGroupRegularExpressionKey(), ConsumerGroupRegularExpressionValue():
                self.regexes[key.regular_expression] = value
            case ConsumerGroupRegularExpressionKey(), None:
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
        for key in (session_of(member_id), (REBALANCE, member_id), (JOIN, member_id), (SYNC, member_id)):
            self.timers.cancel(key)

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


def topics_of(
    member: ConsumerGroupMember, regexes: Mapping[str, ConsumerGroupRegularExpressionValue]
) -> frozenset[str]:
    """Return the topics that a member subscribes to, whether they exist or not."""
    resolved = regexes.get(member.topic_regex) if member.topic_regex else None
    return member.topic_names if resolved is None else member.topic_names.union(resolved.topics)


def _pairs(topics: PartitionEpochs) -> Iterable[tuple[bytes, int]]:
    return ((topic_id, number) for topic_id, epochs in topics.items() for number in epochs)
