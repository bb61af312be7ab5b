"""A group of the classic protocol: its members, its generation, and the checks of its requests. No I/O, no event loop.

JoinGroup, SyncGroup, LeaveGroup and deadlines change the group through functions of `joining`, `syncing`, `leaving` and
`rebalance`. Each of them handles one request or event; then the caller takes the actions: responses to requests that
waited, and records to write. The group's invariants:

  - one generation at a time, whose number only grows; members of another one are refused (ILLEGAL_GENERATION)
  - a member's assignment comes from the leader of its own generation, and only once the assignment is written
  - no request waits for ever: the next generation, an error or the member's end answers it

Source: Kafka's ClassicGroup and GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.broker.groups.classic.actions import Action, Outbox, Waiter, WhenWritten
from barnabas.broker.groups.classic.member import ClassicGroupMember
from barnabas.broker.groups.classic.roster import GroupRoster
from barnabas.broker.groups.classic.state import PREVIOUS_STATES, WITH_MEMBERS
from barnabas.broker.groups.group import SINCE_COMMIT, GroupState, GroupType, OffsetExpiry
from barnabas.broker.groups.history import EventMember
from barnabas.broker.groups.log.records import GroupRecord
from barnabas.broker.groups.timers import GroupClock, GroupTimers, session_of
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, DecodeError, ErrorCode
from barnabas.protocol.groups.consumer_protocol import CONSUMER, subscribed_topics
from barnabas.protocol.groups.keys import GroupMetadataKey
from barnabas.protocol.groups.values import GroupMetadataValue
from barnabas.protocol.messages.groups.describe_groups import DescribedGroup
from barnabas.protocol.messages.groups.join_group import NO_MEMBER_ID, JoinedMember, JoinGroupResponse
from barnabas.protocol.messages.groups.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from barnabas.broker.groups.classic.settings import GroupSettings
    from barnabas.broker.groups.history import GroupHistories
    from barnabas.protocol.messages.groups.explain_group import GroupEventKind


class InitialRebalance:
    """The first rebalance of an empty group, which waits for more members; `rebalance` says for how long."""

    __slots__ = ("delay_ms", "has_newcomer", "remaining_ms")

    def __init__(self) -> None:
        self.delay_ms = 0
        self.remaining_ms: int | None = None
        """How much longer it may be delayed. None: no initial rebalance is in progress."""
        self.has_newcomer = False
        """Whether a member joined since the last delay began."""


class ClassicGroup:
    """One group. Take the actions after every call that changes it.

    generation       of the last completed join phase; 0 before the first one
    protocol_type    `consumer`, `connect`; empty until the first member joins
    protocol         the assignor of the generation; None before the first one
    is_refused       whether the last assignment could not be written
    state_since_ms   wall time of the last change of state
    """

    __slots__ = (
        "_clock",
        "_histories",
        "_outbox",
        "generation",
        "group_id",
        "initial",
        "is_refused",
        "previous_state",
        "protocol",
        "protocol_type",
        "roster",
        "settings",
        "state",
        "state_since_ms",
        "timers",
    )

    group_type = GroupType.CLASSIC

    def __init__(
        self, group_id: str, settings: GroupSettings, clock: GroupClock, histories: GroupHistories | None = None
    ) -> None:
        """`histories` gets the group's events, if given."""
        self.group_id = group_id
        self._histories = histories
        self.settings = settings
        self._clock = clock
        self.state = GroupState.EMPTY
        self.previous_state = GroupState.DEAD
        self.state_since_ms = clock.wall_ms()
        self.generation = 0
        self.protocol_type = ""
        self.protocol: str | None = None
        self.is_refused = False
        self.roster = GroupRoster()
        self.timers = GroupTimers(clock.now)
        self.initial = InitialRebalance()
        self._outbox = Outbox()

    @property
    def wake_at(self) -> float:
        """When to call `rebalance.tick` next; infinite without a deadline."""
        return self.timers.wake_at

    def transition_to(self, state: GroupState) -> None:
        """Enter `state`. An impossible transition is a bug."""
        assert self.state in PREVIOUS_STATES[state], f"{self.group_id}: {self.state} -> {state}"
        self.previous_state, self.state = self.state, state
        self.state_since_ms = self._clock.wall_ms()

    def describe(self) -> DescribedGroup:
        """Return the group as DescribeGroups shows it."""
        protocol = self.protocol if self.state is GroupState.STABLE else None
        members = [member.describe(protocol) for member in self.roster]
        return DescribedGroup(
            group_id=self.group_id,
            state=self.state.value,
            protocol_type=self.protocol_type,
            protocol=protocol or "",
            members=members,
        )

    def report(self, kind: GroupEventKind, member: ClassicGroupMember | None = None, detail: str = "") -> None:
        """Add an event to the group's history."""
        if self._histories is not None:
            about = None if member is None else EventMember(member.member_id, member.client_id, member.client_host)
            self._histories.add(self.group_id, kind, about, detail)

    # --- members and their sessions

    def validate_member(self, member_id: str, group_instance_id: str | None) -> ClassicGroupMember:
        """Return the member. Raises BrokerError UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID for a replaced one."""
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
        """Return the error UNKNOWN_MEMBER_ID."""
        return BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {self.group_id!r} has no member {member_id!r}")

    def extend_session(self, member: ClassicGroupMember, timeout_ms: int | None = None) -> None:
        """Restart the member's session timeout."""
        self.timers.schedule(
            session_of(member.member_id), member.session_timeout_ms if timeout_ms is None else timeout_ms
        )

    def heartbeat(self, member_id: str, group_instance_id: str | None, generation: int) -> ErrorCode:
        """Extend the member's session. Return NONE, REBALANCE_IN_PROGRESS, or why it is not of this generation."""
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        try:
            member = self.validate_member(member_id, group_instance_id)
        except BrokerError as error:
            return error.code
        if generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        self.extend_session(member)
        return ErrorCode.REBALANCE_IN_PROGRESS if self.state is GroupState.PREPARING_REBALANCE else ErrorCode.NONE

    def remove(self, member: ClassicGroupMember, error: ErrorCode = ErrorCode.UNKNOWN_MEMBER_ID) -> None:
        """Remove the member, and answer its waiting requests with `error`."""
        self.answer_join(member, JoinGroupResponse(error=error))
        self.answer_sync(member, SyncGroupResponse(error=error))
        self.timers.cancel(session_of(member.member_id))
        self.roster.remove(member.member_id)

    def forget_pending(self, member_id: str) -> None:
        """Forget a member id that was handed out and with which no client joined."""
        self.timers.cancel(session_of(member_id))
        self.roster.remove(member_id)

    def answer_all(self, error: ErrorCode) -> None:
        """Answer all waiting requests with `error`; the members stay."""
        for member in self.roster:
            self.answer_join(member, JoinGroupResponse(error=error, member_id=member.member_id))
            self.answer_sync(member, SyncGroupResponse(error=error))

    def die(self) -> None:
        """Refuse all waiting requests and stop all deadlines: the group is deleted."""
        self.answer_all(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self.timers.clear()
        self.transition_to(GroupState.DEAD)

    # --- committed offsets and deletion (see Group)

    def validate_offset_commit(
        self, member_id: str, group_instance_id: str | None, generation: int, *, knows_member_epochs: bool = True
    ) -> None:
        """Raise BrokerError if offsets may not be committed: the member is not of this generation.

        A consumer that assigns its partitions itself commits without a generation (below 0), member id and instance id;
        it may while the group has no members. A member's commit counts as a heartbeat.
        """
        self._ensure_not_deleted()
        if generation < 0 and self.state is GroupState.EMPTY:
            return
        if generation < 0 and member_id == NO_MEMBER_ID and group_instance_id is None:
            raise self.unknown_member(member_id)
        member = self._validate_generation(member_id, group_instance_id, generation)
        if self.state is GroupState.COMPLETING_REBALANCE:
            raise BrokerError(ErrorCode.REBALANCE_IN_PROGRESS, f"group {self.group_id!r} rebalances, join again")
        self.extend_session(member)

    def validate_transactional_commit(self, member_id: str, group_instance_id: str | None, generation: int) -> None:
        """Raise BrokerError if the request names a member that is not of this generation."""
        self._ensure_not_deleted()
        names_member = generation >= 0 or member_id != NO_MEMBER_ID or group_instance_id is not None
        if names_member and (generation >= 0 or self.state is not GroupState.EMPTY):
            self._validate_generation(member_id, group_instance_id, generation)

    def _ensure_not_deleted(self) -> None:
        if self.state is GroupState.DEAD:
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"group {self.group_id!r} is being deleted")

    def _validate_generation(
        self, member_id: str, group_instance_id: str | None, generation: int
    ) -> ClassicGroupMember:
        member = self.validate_member(member_id, group_instance_id)
        if generation != self.generation:
            raise BrokerError(
                ErrorCode.ILLEGAL_GENERATION,
                f"group {self.group_id!r} has generation {self.generation}, not {generation}",
            )
        return member

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Allow it: classic members fetch offsets without their generation."""

    def validate_offset_delete(self) -> None:
        """Raise BrokerError NON_EMPTY_GROUP for members that are not consumers: their topics are unknown."""
        if self.protocol_type != CONSUMER:
            self.validate_delete()

    def validate_delete(self) -> None:
        """Raise BrokerError NON_EMPTY_GROUP for a group with members."""
        if self.state in WITH_MEMBERS:
            raise BrokerError(
                ErrorCode.NON_EMPTY_GROUP,
                f"group {printable(self.group_id)} has {len(self.roster)} members ({self.state.value})",
            )

    def is_subscribed(self, topic: str) -> bool:
        """Return whether a member reads `topic`, or may. Only the subscriptions of consumers can be read."""
        if self.protocol_type != CONSUMER or self.protocol is None:
            return False
        try:
            return any(topic in subscribed_topics(member.metadata(self.protocol)) for member in self.roster)
        except DecodeError:
            return True  # the client does not use Kafka's format: its topics are unknown

    def offset_expiry(self) -> OffsetExpiry | None:
        """Return how the group's offsets age; None while it rebalances or its members' topics are unknown."""
        if not self.protocol_type:
            return SINCE_COMMIT
        if self.state is GroupState.EMPTY:
            return OffsetExpiry(self.state_since_ms)
        return SINCE_COMMIT if self.state is GroupState.STABLE and self.protocol_type == CONSUMER else None

    def tombstones(self) -> list[GroupRecord]:
        """Return the record that deletes the group."""
        return [GroupRecord(GroupMetadataKey(self.group_id), None)]

    # --- responses

    def answer(self, waiter: Waiter, response: JoinGroupResponse | SyncGroupResponse) -> None:
        """Respond to a request that does not wait, or no longer waits."""
        self._outbox.respond(waiter, response)

    def wait_for_join(self, member: ClassicGroupMember, waiter: Waiter) -> None:
        """Let a join wait for the next generation.

        An earlier waiting join of the member is answered REBALANCE_IN_PROGRESS. Kafka never answers it, but here a
        connection handles one request at a time and would hang.
        """
        self.answer_join(member, JoinGroupResponse(error=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.member_id))
        member.joining = waiter

    def answer_join(self, member: ClassicGroupMember, response: JoinGroupResponse) -> None:
        """Respond to the member's waiting join, if one waits."""
        waiter, member.joining = member.joining, None
        if waiter is not None:
            self.answer(waiter, response)

    def wait_for_sync(self, member: ClassicGroupMember, waiter: Waiter) -> None:
        """Let a sync wait for the leader's assignment. An earlier one is answered as in `wait_for_join`."""
        self.answer_sync(member, SyncGroupResponse(error=ErrorCode.REBALANCE_IN_PROGRESS))
        member.syncing = waiter

    def answer_sync(self, member: ClassicGroupMember, response: SyncGroupResponse) -> bool:
        """Respond to the member's waiting sync; return whether one waited."""
        waiter, member.syncing = member.syncing, None
        if waiter is None:
            return False
        self.answer(waiter, response)
        return True

    def joined(
        self, member: ClassicGroupMember, *, with_members: bool, skip_assignment: bool = False
    ) -> JoinGroupResponse:
        """Return the response to a join: the present generation."""
        return JoinGroupResponse(
            member_id=member.member_id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            leader=self.roster.leader or "",
            skip_assignment=skip_assignment,
            members=self._joined_members() if with_members else (),
        )

    def synced(self, member: ClassicGroupMember) -> SyncGroupResponse:
        """Return the response to a sync: the member's assignment."""
        return SyncGroupResponse(protocol_type=self.protocol_type, protocol=self.protocol, assignment=member.assignment)

    def propagate_assignment(self, assignments: Mapping[str, bytes], error: ErrorCode = ErrorCode.NONE) -> None:
        """Set every member's assignment and answer the waiting syncs, all of them with `error` if there is one."""
        for member in self.roster:
            member.assignment = assignments.get(member.member_id, b"")
            response = self.synced(member) if error == ErrorCode.NONE else SyncGroupResponse(error=error)
            if self.answer_sync(member, response):
                self.extend_session(member)

    # --- records

    def write(self, assignments: Mapping[str, bytes], when_written: WhenWritten) -> None:
        """Write the group's record with these assignments."""
        self._outbox.write(self._record(assignments), when_written)

    def write_existence(self) -> None:
        """Write the record of a new group before its first member joins, as Kafka does; refuse joins if that fails."""

        def written(error: ErrorCode) -> None:
            if error != ErrorCode.NONE:
                self.answer_all(error)

        self._outbox.write(GroupMetadataValue("", 0, None, None, self.state_since_ms), written)

    def written(self, write_id: int, error: ErrorCode) -> None:
        """Report that the record of a `WriteGroup` is durable (NONE), or could not be written."""
        self._outbox.written(write_id, error)

    def take_actions(self) -> list[Action]:
        """Remove and return the actions, in their order."""
        return self._outbox.take()

    def _record(self, assignments: Mapping[str, bytes]) -> GroupMetadataValue:
        protocol = self.protocol
        members = (
            ()
            if protocol is None
            else tuple([member.record(protocol, assignments.get(member.member_id, b"")) for member in self.roster])
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
            JoinedMember(
                member_id=each.member_id,
                group_instance_id=each.group_instance_id,
                metadata=each.metadata(self.protocol),
            )
            for each in self.roster
        ]
