"""What a classic group is at a moment, and the steps that all of its transitions are made of.

Nothing in here decides anything: `joining`, `rebalance` and `classic_group` do. Actions are collected in their order,
and taken by the caller when a request or a deadline is worked off, so that nobody sees a group half way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from barnabas.broker.groups.classic.actions import Action, Answer, Waiter, WriteGroup
from barnabas.broker.groups.classic.member import GroupMember
from barnabas.broker.groups.classic.roster import GroupRoster
from barnabas.broker.groups.classic.state import PREVIOUS_STATES, GroupState
from barnabas.broker.groups.classic.timers import GroupTimers, session_of
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.groups.metadata import GroupMetadataValue
from barnabas.protocol.messages.groups.join_group import JoinedMember, JoinGroupResponse
from barnabas.protocol.messages.groups.sync_group import SyncGroupResponse

WhenWritten = Callable[[ErrorCode], None]
"""Called with NONE, or with why the record is not there."""


class GroupSettings(NamedTuple):
    """The broker's, in ms: group.min.session.timeout.ms and so on."""

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 0
    max_size: int = 2**31 - 1


class GroupClock(NamedTuple):
    """`now` in seconds that never go back, for deadlines; `wall_ms` for the record."""

    now: Callable[[], float]
    wall_ms: Callable[[], int]


class GroupCore:
    """The state of a group. `protocol_type` is empty while nobody has joined."""

    __slots__ = (
        "_clock",
        "_next_write",
        "_writes",
        "actions",
        "generation",
        "group_id",
        "previous_state",
        "protocol",
        "protocol_type",
        "roster",
        "settings",
        "state",
        "state_since_ms",
        "timers",
    )

    def __init__(self, group_id: str, settings: GroupSettings, clock: GroupClock) -> None:
        self.group_id = group_id
        self.settings = settings
        self._clock = clock
        self.state = GroupState.EMPTY
        self.previous_state = GroupState.DEAD
        self.state_since_ms = clock.wall_ms()
        self.generation = 0
        self.protocol_type = ""
        self.protocol: str | None = None
        self.roster = GroupRoster()
        self.timers = GroupTimers(clock.now)
        self.actions: list[Action] = []
        self._writes: dict[int, WhenWritten] = {}
        self._next_write = 0

    def transition_to(self, state: GroupState) -> None:
        """An impossible transition is a bug."""
        assert self.state in PREVIOUS_STATES[state], f"{self.group_id}: {self.state} -> {state}"
        self.previous_state, self.state = self.state, state
        self.state_since_ms = self._clock.wall_ms()

    def validate_member(self, member_id: str, group_instance_id: str | None) -> GroupMember:
        """The member. Raises BrokerError UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID where another one took its place."""
        if group_instance_id is not None:
            current = self.roster.static_id(group_instance_id)
            if current is not None and current != member_id:
                raise BrokerError(
                    ErrorCode.FENCED_INSTANCE_ID,
                    f"{group_instance_id!r} of group {self.group_id!r} is {current!r} now, not {member_id!r}",
                )
            if current is None:
                raise self.unknown_member(member_id)
        member = self.roster.get(member_id)
        if member is None:
            raise self.unknown_member(member_id)
        return member

    def unknown_member(self, member_id: str) -> BrokerError:
        """What is told to one that the group does not know."""
        return BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {self.group_id!r} has no member {member_id!r}")

    # --- sessions

    def extend_session(self, member: GroupMember, timeout_ms: int | None = None) -> None:
        """It was heard of now."""
        self.timers.schedule(
            session_of(member.member_id), member.session_timeout_ms if timeout_ms is None else timeout_ms
        )

    def remove(self, member: GroupMember, error: ErrorCode = ErrorCode.UNKNOWN_MEMBER_ID) -> None:
        """The member is gone; whoever waits in its name is told `error`."""
        self.answer_join(member, JoinGroupResponse(error))
        self.answer_sync(member, SyncGroupResponse(error))
        self.timers.cancel(session_of(member.member_id))
        self.roster.remove(member.member_id)

    # --- answers

    def answer(self, waiter: Waiter, response: JoinGroupResponse | SyncGroupResponse) -> None:
        """Answer a request that does not wait (any more)."""
        self.actions.append(Answer(waiter, response))

    def wait_for_join(self, member: GroupMember, waiter: Waiter) -> None:
        """The answer comes with the next generation. An earlier request of the same member has lost its meaning."""
        self.answer_join(member, JoinGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
        member.joining = waiter

    def answer_join(self, member: GroupMember, response: JoinGroupResponse) -> bool:
        """Whether somebody waited for it."""
        waiter, member.joining = member.joining, None
        if waiter is None:
            return False
        self.answer(waiter, response)
        return True

    def wait_for_sync(self, member: GroupMember, waiter: Waiter) -> None:
        """The answer comes with the leader's assignment."""
        self.answer_sync(member, SyncGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS))
        member.syncing = waiter

    def answer_sync(self, member: GroupMember, response: SyncGroupResponse) -> bool:
        """Whether somebody waited for it."""
        waiter, member.syncing = member.syncing, None
        if waiter is None:
            return False
        self.answer(waiter, response)
        return True

    def joined(self, member: GroupMember, *, with_members: bool, skip_assignment: bool = False) -> JoinGroupResponse:
        """The answer that tells a member of the generation that there is."""
        return JoinGroupResponse(
            ErrorCode.NONE,
            member.member_id,
            self.generation,
            self.protocol_type,
            self.protocol,
            self.roster.leader or "",
            skip_assignment,
            self._joined_members() if with_members else (),
        )

    def synced(self, member: GroupMember) -> SyncGroupResponse:
        """The answer that hands a member its assignment."""
        return SyncGroupResponse(ErrorCode.NONE, self.protocol_type, self.protocol, member.assignment)

    def propagate_assignment(self, assignments: Mapping[str, bytes], error: ErrorCode = ErrorCode.NONE) -> None:
        """Give everybody their part; with an `error` nobody has any, and those that wait are told it."""
        for member in self.roster:
            member.assignment = assignments.get(member.member_id, b"")
            response = self.synced(member) if error == ErrorCode.NONE else SyncGroupResponse(error)
            if self.answer_sync(member, response):
                self.extend_session(member)

    # --- the record

    def write(self, assignments: Mapping[str, bytes], when_written: WhenWritten) -> None:
        """Ask for the group's record; `when_written` is called once it is durable, or could not be written."""
        self._ask(self._record(assignments), when_written)

    def write_new(self, when_written: WhenWritten) -> None:
        """Ask for the record of a group that nobody has joined yet, as Kafka does at the first join."""
        self._ask(GroupMetadataValue("", 0, None, None, self.state_since_ms), when_written)

    def written(self, write_id: int, error: ErrorCode) -> None:
        """What became of a write."""
        self._writes.pop(write_id)(error)

    def take_actions(self) -> list[Action]:
        """What is to be done, in this order."""
        actions, self.actions = self.actions, []
        return actions

    def _ask(self, value: GroupMetadataValue, when_written: WhenWritten) -> None:
        self._next_write += 1
        self._writes[self._next_write] = when_written
        self.actions.append(WriteGroup(self._next_write, value))

    def _record(self, assignments: Mapping[str, bytes]) -> GroupMetadataValue:
        protocol = self.protocol
        members = (
            []
            if protocol is None
            else [member.record(protocol, assignments.get(member.member_id, b"")) for member in self.roster]
        )
        return GroupMetadataValue(
            protocol_type=self.protocol_type,
            generation=self.generation,
            protocol=protocol,
            leader=self.roster.leader if members else None,
            current_state_timestamp=self.state_since_ms,
            members=members,
        )

    def _joined_members(self) -> list[JoinedMember]:
        assert self.protocol is not None
        return [
            JoinedMember(each.member_id, each.group_instance_id, each.metadata(self.protocol)) for each in self.roster
        ]


def ignore_outcome(_: ErrorCode) -> None:
    """For a write whose failure changes nothing: the caller logs it."""
