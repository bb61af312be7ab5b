"""A share group (KIP-932) as its records describe it. Only `replay` changes it, at a start and at run time alike.

    group epoch        grows with every change that needs a new assignment: a member joins, leaves or reads other
                       topics; a partition's state was initialized
    assignment epoch   the group epoch of the target assignment, which gives every member its partitions
    member epoch       the assignment epoch that the member has been told of

Several members may have the same partition, so none waits for another. The group is Empty or Stable. The deadlines of
the members' sessions are not in the records. Source: Kafka's ShareGroup, ModernGroup.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from barnabas.broker.groups.group import CommitCheck, GroupState, GroupType, OffsetExpiry
from barnabas.broker.groups.log.records import GroupRecord
from barnabas.broker.groups.share.member import ShareGroupMember
from barnabas.broker.groups.share.records import member_tombstones
from barnabas.broker.groups.share.states import NOTHING, StatePartitions
from barnabas.broker.groups.timers import GroupTimers, session_of
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.groups.keys import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMetadataKey,
)
from barnabas.protocol.groups.share_group_values import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataValue,
    ShareGroupValue,
)

if TYPE_CHECKING:
    from barnabas.broker.groups.timers import GroupClock
    from barnabas.protocol.groups.consumer_group_values import Partitions

SHARE: Final = "share"

GONE_EPOCH: Final = -1

FIRST_PAUSE_MS: Final = 200
"""Pause after the first failed initialization of states; it doubles with each further one."""


class Postponed(NamedTuple):
    """The time before which states are not initialized, and the pause that led to it."""

    until: float = -math.inf
    pause_ms: int = 0


NOT_POSTPONED: Final = Postponed()


class ShareGroup:
    """One group.

    is_checked    its epoch was computed for its topics as they are now; a change of a topic resets it
    states        the partitions with state at the share coordinator
    states_since  when the last record of `states` was written here, by the monotonic clock; -inf if at a start
    postponed     when states may be initialized again after a failure, by the monotonic clock, and the pause before
    """

    __slots__ = (
        "_now",
        "assignment_epoch",
        "assignment_ms",
        "epoch",
        "group_id",
        "has_states",
        "is_checked",
        "members",
        "metadata_hash",
        "postponed",
        "states",
        "states_since",
        "target",
        "timers",
    )

    group_type = GroupType.SHARE
    protocol_type = SHARE

    def __init__(self, group_id: str, clock: GroupClock) -> None:
        self.group_id = group_id
        self._now = clock.now
        self.is_checked = False
        self.epoch = 1
        self.metadata_hash = 0
        self.assignment_epoch = 0
        self.assignment_ms = 0
        self.members: dict[str, ShareGroupMember] = {}
        self.target: dict[str, Partitions] = {}
        self.has_states = False
        self.states = NOTHING
        self.states_since = -math.inf
        self.postponed = NOT_POSTPONED
        self.timers = GroupTimers(clock.now)

    @property
    def state(self) -> GroupState:
        """Empty or Stable."""
        return GroupState.STABLE if self.members else GroupState.EMPTY

    @property
    def topic_names(self) -> frozenset[str]:
        """The topics that any member reads, whether they exist or not."""
        return frozenset().union(*{member.topic_names for member in self.members.values()})

    def member(self, member_id: str) -> ShareGroupMember:
        """Return the member. Raises BrokerError UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise BrokerError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member

    def ensure_empty(self) -> None:
        """Raise BrokerError NON_EMPTY_GROUP for a group with members."""
        if self.members:
            raise BrokerError(
                ErrorCode.NON_EMPTY_GROUP, f"group {printable(self.group_id)} has {len(self.members)} members"
            )

    # --- initialization of states

    def postpone_initialization(self, longest_ms: int) -> None:
        """Wait before states are initialized again, longer after each failure in a row."""
        pause_ms = min(max(FIRST_PAUSE_MS, 2 * self.postponed.pause_ms), longest_ms)
        self.postponed = Postponed(self._now() + pause_ms / 1000, pause_ms)

    @property
    def postponed_ms(self) -> int:
        """Return the time until states may be initialized; 0 if they may be."""
        left = self.postponed.until - self._now()
        return max(1, round(left * 1000)) if left > 0 else 0

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

    # --- committed offsets, which a share group does not have, and deletion (see Group)

    def validate_offset_commit(
        self, member_id: str, group_instance_id: str | None, generation: int, *, knows_member_epochs: bool
    ) -> CommitCheck | None:
        """Raise BrokerError GROUP_ID_NOT_FOUND."""
        self._refuse_offsets()

    def validate_transactional_commit(
        self, member_id: str, group_instance_id: str | None, generation: int
    ) -> CommitCheck | None:
        """Raise BrokerError GROUP_ID_NOT_FOUND."""
        self._refuse_offsets()

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise BrokerError GROUP_ID_NOT_FOUND."""
        self._refuse_offsets()

    def validate_offset_delete(self) -> None:
        """Raise BrokerError GROUP_ID_NOT_FOUND."""
        self._refuse_offsets()

    def validate_delete(self) -> None:
        """Raise BrokerError NON_EMPTY_GROUP for a group with members."""
        self.ensure_empty()

    def is_subscribed(self, topic: str) -> bool:
        """Return whether a member reads the topic."""
        return any(topic in member.topic_names for member in self.members.values())

    def offset_expiry(self) -> OffsetExpiry | None:
        """Return None: a share group stays until it is deleted."""
        return None

    def _refuse_offsets(self) -> NoReturn:
        raise BrokerError(
            ErrorCode.GROUP_ID_NOT_FOUND,
            f"group {printable(self.group_id)} is a share group, without committed offsets",
        )

    # --- records

    def tombstones(self) -> list[GroupRecord]:
        """Return the records that delete the group with its members. Kafka's replay needs this order."""
        group_id = self.group_id
        removed = [member_tombstones(group_id, each) for each in dict.fromkeys((*self.members, *self.target))]
        return [
            *(current for current, _, _ in removed),
            *(target for _, target, _ in removed),
            GroupRecord(ShareGroupTargetAssignmentMetadataKey(group_id), None),
            *(member for _, _, member in removed),
            GroupRecord(ShareGroupStatePartitionMetadataKey(group_id), None),
            GroupRecord(ShareGroupMetadataKey(group_id), None),
        ]

    def replay(self, key: ShareGroupKey, value: ShareGroupValue | None) -> None:
        """Apply one record of the group; a tombstone undoes the record of its key."""
        match key, value:
            case ShareGroupMetadataKey(), ShareGroupMetadataValue():
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
            case ShareGroupMemberMetadataKey(), ShareGroupMemberMetadataValue():
                self.members[key.member_id] = self._known(key.member_id).with_metadata(value)
            case ShareGroupMemberMetadataKey(), None:
                self.members.pop(key.member_id, None)
                self.timers.cancel(session_of(key.member_id))
            case ShareGroupTargetAssignmentMetadataKey(), ShareGroupTargetAssignmentMetadataValue():
                self.assignment_epoch, self.assignment_ms = value.assignment_epoch, value.assignment_timestamp
            case ShareGroupTargetAssignmentMetadataKey(), None:
                self.assignment_epoch, self.assignment_ms = -1, 0
            case ShareGroupTargetAssignmentMemberKey(), ShareGroupTargetAssignmentMemberValue():
                self.target[key.member_id] = value.partitions
            case ShareGroupTargetAssignmentMemberKey(), None:
                self.target.pop(key.member_id, None)
            case ShareGroupCurrentMemberAssignmentKey(), ShareGroupCurrentMemberAssignmentValue():
                self.members[key.member_id] = self._known(key.member_id).with_current(value)
            case ShareGroupCurrentMemberAssignmentKey(), None:
                member = self.members.get(key.member_id)
                if member is not None:
                    self.members[key.member_id] = replace(
                        member, member_epoch=GONE_EPOCH, previous_member_epoch=GONE_EPOCH, assigned={}
                    )
            case ShareGroupStatePartitionMetadataKey(), ShareGroupStatePartitionMetadataValue():
                self.states, self.has_states, self.states_since = StatePartitions.of(value), True, self._now()
            case ShareGroupStatePartitionMetadataKey(), None:
                self.states, self.has_states = NOTHING, False

    def _known(self, member_id: str) -> ShareGroupMember:
        return self.members.get(member_id) or ShareGroupMember(member_id)
