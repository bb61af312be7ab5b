"""A group of the classic protocol: who is in it, which generation it has, who may commit. Pure: no I/O, no loop.

Every call works one request or event off and ends in `take_actions`: answers for those that wait, and records to write.
Deadlines are looked at by `tick`, at the latest when `wake_at` has come. The group's invariants:

  - one generation at a time, whose number only grows; members of another one are refused (ILLEGAL_GENERATION)
  - a member has an assignment only from the leader of its own generation, and only once that is written down
  - nobody waits for ever: a request that waits is answered by the next generation, an error or the member's end

Source: Kafka's ClassicGroup and GroupMetadataManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.groups.classic.core import GroupClock, GroupCore, GroupSettings
from barnabas.broker.groups.classic.joining import Joining, JoiningClient
from barnabas.broker.groups.classic.member import GroupMember
from barnabas.broker.groups.classic.rebalance import Rebalance
from barnabas.broker.groups.classic.state import GroupState
from barnabas.broker.groups.classic.timers import JOIN, SYNC
from barnabas.protocol.errors import BrokerError, DecodeError, ErrorCode
from barnabas.protocol.groups.metadata import GroupMetadataValue
from barnabas.protocol.groups.subscription import CONSUMER, subscribed_topics
from barnabas.protocol.messages.groups.describe_groups import DescribedGroup
from barnabas.protocol.messages.groups.join_group import NO_MEMBER_ID, JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.groups.leave_group import LeavingMember, LeftMember
from barnabas.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from barnabas.broker.groups.classic.actions import Action, Waiter
    from barnabas.broker.groups.classic.roster import GroupRoster


class ClassicGroup:
    """One group. Each method that changes it is followed by `take_actions`."""

    __slots__ = ("_core", "_joining", "_rebalance")

    def __init__(self, group_id: str, settings: GroupSettings, clock: GroupClock) -> None:
        self._core = GroupCore(group_id, settings, clock)
        self._rebalance = Rebalance(self._core)
        self._joining = Joining(self._core, self._rebalance)

    @classmethod
    def restored(
        cls, group_id: str, value: GroupMetadataValue, settings: GroupSettings, clock: GroupClock
    ) -> ClassicGroup:
        """The group of a record: stable, with every member's session from now on, or empty.

        Without a leader it was a consumer group that had not settled (`downgraded`): it rebalances.
        """
        group = cls(group_id, settings, clock)
        core = group._core
        core.generation = value.generation
        core.protocol_type = value.protocol_type
        core.protocol = value.protocol
        if value.current_state_timestamp >= 0:
            core.state_since_ms = value.current_state_timestamp
        for each in value.members:
            member = GroupMember(
                each.member_id,
                group_instance_id=each.group_instance_id,
                client_id=each.client_id,
                client_host=each.client_host,
                rebalance_timeout_ms=each.rebalance_timeout_ms
                if each.rebalance_timeout_ms >= 0
                else each.session_timeout_ms,
                session_timeout_ms=each.session_timeout_ms,
                protocols={} if value.protocol is None else {value.protocol: each.subscription},
                assignment=each.assignment,
            )
            core.roster.add(member)
            core.extend_session(member)
        if value.members:
            core.state = GroupState.STABLE
            if value.leader is not None and value.leader in core.roster:
                core.roster.leader = value.leader
            else:
                group._rebalance.prepare("it was a consumer group")
            if len(core.roster) > settings.max_size and core.state == GroupState.STABLE:
                group._rebalance.prepare("there are more members than group.max.size")
        return group

    # --- what it is

    @property
    def group_id(self) -> str:
        """Its name."""
        return self._core.group_id

    @property
    def state(self) -> GroupState:
        """Now."""
        return self._core.state

    @property
    def generation(self) -> int:
        """Of the last completed joining; 0 before the first one."""
        return self._core.generation

    @property
    def protocol_type(self) -> str:
        """`consumer`, `connect`; empty while nobody has joined."""
        return self._core.protocol_type

    @property
    def state_since_ms(self) -> int:
        """When the state changed last, in ms of wall time."""
        return self._core.state_since_ms

    @property
    def protocol(self) -> str | None:
        """The assignor of the generation; None before the first one."""
        return self._core.protocol

    @property
    def roster(self) -> GroupRoster:
        """Who is in it; to look at."""
        return self._core.roster

    @property
    def members(self) -> int:
        """How many there are."""
        return len(self._core.roster)

    @property
    def is_idle(self) -> bool:
        """Empty, and nobody is about to join."""
        return self._core.state == GroupState.EMPTY and not self._core.roster.pending_join

    def is_subscribed(self, topic: str) -> bool:
        """Whether a member reads `topic`, or may: the subscription of consumers is looked into, others' cannot be."""
        core = self._core
        if core.protocol_type != CONSUMER or core.protocol is None:
            return False
        try:
            return any(topic in subscribed_topics(member.metadata(core.protocol)) for member in core.roster)
        except DecodeError:
            return True  # made by a client that does not keep to Kafka's format: nobody knows

    def describe(self) -> DescribedGroup:
        """For operators."""
        core = self._core
        protocol = core.protocol if core.state == GroupState.STABLE else None
        members = [member.describe(protocol) for member in core.roster]
        return DescribedGroup(core.group_id, core.state.value, core.protocol_type, protocol or "", members)

    # --- requests

    def join(self, request: JoinGroupRequest, client: JoiningClient, waiter: Waiter) -> None:
        """`joining` says what becomes of it."""
        self._joining.join(request, client, waiter)

    def write_existence(self) -> None:
        """Write the group down for the first time; without that, nobody is let in. Kafka does the same."""
        core = self._core

        def written(error: ErrorCode) -> None:
            if error != ErrorCode.NONE:
                self.answer_all(error)

        core.write_new(written)

    def sync(self, request: SyncGroupRequest, waiter: Waiter) -> None:
        """The leader's assignment is written down before anybody gets it; the others wait for it."""
        core = self._core
        try:
            member = self._validate_sync(request)
        except BrokerError as error:
            core.answer(waiter, SyncGroupResponse(error.code))
            return
        if core.state == GroupState.PREPARING_REBALANCE:
            core.answer(waiter, SyncGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS))
            return
        core.roster.pending_sync.discard(member.member_id)
        if core.state == GroupState.STABLE:
            core.answer(waiter, core.synced(member))
            return
        core.wait_for_sync(member, waiter)
        if core.roster.leader == member.member_id:
            self._assign(dict(request.assignments))

    def heartbeat(self, member_id: str, group_instance_id: str | None, generation: int) -> ErrorCode:
        """NONE, REBALANCE_IN_PROGRESS, or why the member is none of this generation."""
        core = self._core
        if core.state == GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        try:
            member = core.validate_member(member_id, group_instance_id)
        except BrokerError as error:
            return error.code
        if generation != core.generation:
            return ErrorCode.ILLEGAL_GENERATION
        core.extend_session(member)
        return ErrorCode.REBALANCE_IN_PROGRESS if core.state == GroupState.PREPARING_REBALANCE else ErrorCode.NONE

    def leave(self, members: list[LeavingMember]) -> list[LeftMember]:
        """Remove them, in one rebalance."""
        results = [LeftMember(each.member_id, each.group_instance_id, self._leave(each)) for each in members]
        if any(result.error == ErrorCode.NONE for result in results):
            if self._core.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
                self._rebalance.prepare("members left")
            else:
                self._rebalance.maybe_complete()
        return results

    def validate_commit(self, member_id: str, group_instance_id: str | None, generation: int) -> None:
        """Raises BrokerError if offsets may not be committed: who commits is no member of this generation.

        Without a generation (below 0), member and instance: a consumer that assigns its partitions itself; it may
        commit while the group has no members. A member's commit counts as a heartbeat.
        """
        core = self._core
        if core.state == GroupState.DEAD:
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"group {core.group_id!r} is being deleted")
        if generation < 0 and core.state == GroupState.EMPTY:
            return
        if generation < 0 and member_id == NO_MEMBER_ID and group_instance_id is None:
            raise core.unknown_member(member_id)
        member = core.validate_member(member_id, group_instance_id)
        if generation != core.generation:
            raise BrokerError(
                ErrorCode.ILLEGAL_GENERATION,
                f"group {core.group_id!r} has generation {core.generation}, not {generation}",
            )
        if core.state == GroupState.COMPLETING_REBALANCE:
            raise BrokerError(ErrorCode.REBALANCE_IN_PROGRESS, f"group {core.group_id!r} rebalances, join again")
        core.extend_session(member)

    # --- events

    @property
    def wake_at(self) -> float:
        """When to call `tick` next, in seconds of the injected clock; infinite where there is nothing to wait for."""
        return self._core.timers.wake_at

    def tick(self) -> None:
        """Do what the deadlines that have passed ask for."""
        timers = self._core.timers
        key = timers.pop_due()
        while key is not None:
            if key == JOIN:
                self._rebalance.joining_ends()
            elif key == SYNC:
                self._rebalance.syncing_ends()
            else:
                self._rebalance.session_ends(key[1])
            key = timers.pop_due()

    def written(self, write_id: int, error: ErrorCode) -> None:
        """The record of a `WriteGroup` is durable (NONE), or could not be written."""
        self._core.written(write_id, error)

    def answer_all(self, error: ErrorCode) -> None:
        """Whoever waits is told `error`; the members stay."""
        for member in self._core.roster:
            self._core.answer_join(member, JoinGroupResponse(error, member.member_id))
            self._core.answer_sync(member, SyncGroupResponse(error))

    def die(self) -> None:
        """The group is deleted: whoever waits is refused, and nothing happens any more."""
        self.answer_all(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self._core.timers.clear()
        self._core.transition_to(GroupState.DEAD)

    def take_actions(self) -> list[Action]:
        """What is to be done, in this order; then forgotten here."""
        return self._core.take_actions()

    # --- steps

    def _validate_sync(self, request: SyncGroupRequest) -> GroupMember:
        core = self._core
        if core.state == GroupState.DEAD:
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"group {core.group_id!r} is being deleted")
        member = core.validate_member(request.member_id, request.group_instance_id)
        if request.generation != core.generation:
            raise BrokerError(ErrorCode.ILLEGAL_GENERATION, f"the generation is {core.generation}")
        if request.protocol_type not in (None, core.protocol_type) or request.protocol not in (None, core.protocol):
            raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"{core.protocol_type} {core.protocol} it is")
        return member

    def _assign(self, assignments: dict[str, bytes]) -> None:
        core = self._core
        generation = core.generation

        def written(error: ErrorCode) -> None:
            if core.state != GroupState.COMPLETING_REBALANCE or core.generation != generation:
                return  # a rebalance began meanwhile, and told those that waited
            if error != ErrorCode.NONE:
                core.propagate_assignment({}, error)
                self._rebalance.prepare(f"the assignment could not be written ({error.name})")
                return
            core.propagate_assignment(assignments)
            core.transition_to(GroupState.STABLE)

        core.write(assignments, written)

    def _leave(self, leaving: LeavingMember) -> ErrorCode:
        core = self._core
        if leaving.member_id in core.roster.pending_join:
            self._rebalance.forget_pending(leaving.member_id)
            return ErrorCode.NONE
        try:
            if leaving.member_id == NO_MEMBER_ID:
                if leaving.group_instance_id is None:
                    raise core.unknown_member(NO_MEMBER_ID)
                member_id = core.roster.static_id(leaving.group_instance_id) or NO_MEMBER_ID
                member = core.validate_member(member_id, None)
            else:
                member = core.validate_member(leaving.member_id, leaving.group_instance_id)
        except BrokerError as error:
            return error.code
        core.remove(member)
        return ErrorCode.NONE
