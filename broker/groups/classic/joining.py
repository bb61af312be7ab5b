"""What becomes of a JoinGroup, by what the group knows of who asks.

    nobody yet            a static member takes its place, or the place of the one with its instance id; a dynamic one
                          is given an id to join with (MEMBER_ID_REQUIRED), or before version 4 joins at once
    an id given out       joins with it
    a member              joins the rebalance that is under way; else begins one, if it leads or has other metadata than
                          before, or is told once more what the generation is

Source: Kafka's GroupMetadataManager (classicGroupJoinToClassicGroup and what it calls).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import uuid4

from barnabas.broker.groups.classic.member import GroupMember, protocols_of
from barnabas.broker.groups.classic.state import GroupState
from barnabas.broker.groups.classic.timers import session_of
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.groups.join_group import NO_MEMBER_ID, JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.groups.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from barnabas.broker.groups.classic.actions import Waiter
    from barnabas.broker.groups.classic.core import GroupCore
    from barnabas.broker.groups.classic.rebalance import Rebalance

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60 * 1000
"""A client that went away while it waited for its first answer is forgotten after this time."""


class JoiningClient(NamedTuple):
    """Who asks; `host` as Kafka shows it, with a slash in front."""

    client_id: str
    host: str


class Joining:
    """The joins of one group."""

    __slots__ = ("_core", "_rebalance")

    def __init__(self, core: GroupCore, rebalance: Rebalance) -> None:
        self._core = core
        self._rebalance = rebalance

    def join(self, request: JoinGroupRequest, client: JoiningClient, waiter: Waiter) -> None:
        """Answer now or later."""
        core = self._core
        member_id = request.member_id
        if core.state == GroupState.DEAD:
            self._refuse(waiter, ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id)
        elif not self._has_room(member_id):
            member = core.roster.get(member_id)
            if member is not None:
                core.remove(member)
            else:
                self._rebalance.forget_pending(member_id)
            self._refuse(waiter, ErrorCode.GROUP_MAX_SIZE_REACHED, NO_MEMBER_ID)
            self._rebalance.maybe_complete()
        elif not self._fits(request):
            self._refuse(waiter, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)
        elif member_id == NO_MEMBER_ID:
            self._join_new(request, client, waiter)
        elif member_id in core.roster.pending_join:
            self._add(member_id, request, client, waiter)
        else:
            try:
                member = core.validate_member(member_id, request.group_instance_id)
            except BrokerError as error:
                self._refuse(waiter, error.code, member_id)
            else:
                self._join_again(member, request, waiter)

    def _has_room(self, member_id: str) -> bool:
        """group.max.size; a member that is in already always has its place, but in a rebalance the first ones win."""
        core = self._core
        member = core.roster.get(member_id)
        if core.state == GroupState.PREPARING_REBALANCE:
            is_in = member is not None and member.joining is not None
            return is_in or core.roster.joining < core.settings.max_size
        if core.state == GroupState.EMPTY:
            return True
        return member is not None or len(core.roster) < core.settings.max_size

    def _fits(self, request: JoinGroupRequest) -> bool:
        core = self._core
        if not request.protocol_type or not request.protocols:
            return False
        if core.state == GroupState.EMPTY:
            return True
        names = [protocol.name for protocol in request.protocols]
        return request.protocol_type == core.protocol_type and core.roster.has_candidate(names)

    def _join_new(self, request: JoinGroupRequest, client: JoiningClient, waiter: Waiter) -> None:
        core = self._core
        instance_id = request.group_instance_id
        member_id = f"{client.client_id if instance_id is None else instance_id}-{uuid4()}"
        if instance_id is not None:
            current = core.roster.get(core.roster.static_id(instance_id) or NO_MEMBER_ID)
            if current is not None:
                self._replace(current, member_id, request, waiter)
            else:
                self._add(member_id, request, client, waiter)
        elif request.requires_known_member_id:
            core.roster.pending_join.add(member_id)
            core.timers.schedule(session_of(member_id), request.session_timeout_ms)
            self._refuse(waiter, ErrorCode.MEMBER_ID_REQUIRED, member_id)
        else:
            self._add(member_id, request, client, waiter)

    def _add(self, member_id: str, request: JoinGroupRequest, client: JoiningClient, waiter: Waiter) -> None:
        core = self._core
        member = GroupMember(
            member_id,
            group_instance_id=request.group_instance_id,
            client_id=client.client_id,
            client_host=client.host,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocols=protocols_of(request),
        )
        member.is_new = True
        if core.state == GroupState.PREPARING_REBALANCE and core.previous_state == GroupState.EMPTY:
            self._rebalance.has_newcomer = True
        if not len(core.roster):
            core.protocol_type = request.protocol_type
        core.roster.add(member)
        core.wait_for_join(member, waiter)
        core.extend_session(member, NEW_MEMBER_JOIN_TIMEOUT_MS)
        self._rebalance.prepare_or_complete(f"a new member came; it says {request.reason or 'nothing'}")

    def _join_again(self, member: GroupMember, request: JoinGroupRequest, waiter: Waiter) -> None:
        core = self._core
        is_leader = core.roster.leader == member.member_id
        is_same = member.matches(protocols_of(request))
        if core.state == GroupState.PREPARING_REBALANCE:
            self._update(member, request, waiter)
            self._rebalance.maybe_complete()
        elif core.state == GroupState.COMPLETING_REBALANCE and is_same:
            core.answer(waiter, core.joined(member, with_members=is_leader))  # its first answer was lost
        elif core.state == GroupState.STABLE and is_same and not is_leader:
            core.answer(waiter, core.joined(member, with_members=False))
        else:
            self._update(member, request, waiter)
            who = "the leader" if is_leader else "a member with new metadata"
            self._rebalance.prepare_or_complete(f"{who} joins again; it says {request.reason or 'nothing'}")

    def _update(self, member: GroupMember, request: JoinGroupRequest, waiter: Waiter) -> None:
        self._core.roster.update(member, protocols_of(request))
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.session_timeout_ms = request.session_timeout_ms
        self._core.wait_for_join(member, waiter)

    def _replace(self, member: GroupMember, member_id: str, request: JoinGroupRequest, waiter: Waiter) -> None:
        """A static member started anew; whoever still waits in its old name is fenced."""
        core = self._core
        old_id = member.member_id
        core.answer_join(member, JoinGroupResponse(ErrorCode.FENCED_INSTANCE_ID, old_id))
        core.answer_sync(member, SyncGroupResponse(ErrorCode.FENCED_INSTANCE_ID))
        old_leader = core.roster.leader
        before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
        core.timers.cancel(session_of(old_id))
        core.roster.rename(member, member_id)
        self._update(member, request, waiter)
        core.extend_session(member)
        if core.state == GroupState.COMPLETING_REBALANCE:
            self._rebalance.prepare("a static member came back")
        elif core.state != GroupState.STABLE:
            self._rebalance.maybe_complete()
        elif core.roster.select_protocol() != core.protocol:
            self._rebalance.prepare("a static member came back and changes the assignor")
        else:
            self._keep_generation(member, old_id, old_leader, before, request)

    def _keep_generation(
        self,
        member: GroupMember,
        old_id: str,
        old_leader: str | None,
        before: tuple[Mapping[str, bytes], int, int],
        request: JoinGroupRequest,
    ) -> None:
        """The static member goes on with the assignment that it had, once its new id is written down."""
        core = self._core
        new_id, generation = member.member_id, core.generation

        def written(error: ErrorCode) -> None:
            if core.roster.get(new_id) is not member or member.joining is None:
                return  # it left, was replaced or joined a rebalance meanwhile, which answered it or will
            if core.generation != generation or core.state != GroupState.STABLE:
                return
            if error != ErrorCode.NONE:
                core.answer_join(member, JoinGroupResponse(error))
                core.timers.cancel(session_of(new_id))
                core.roster.rename(member, old_id)
                core.roster.update(member, before[0])
                _, member.rebalance_timeout_ms, member.session_timeout_ms = before
                core.extend_session(member)
                return
            if request.can_skip_assignment:
                is_leader = core.roster.leader == new_id
                answer = core.joined(member, with_members=is_leader, skip_assignment=is_leader)
            else:
                # Naming the leader's old id keeps a client that cannot skip from assigning anew.
                answer = core.joined(member, with_members=False)._replace(leader=old_leader or "")
            core.answer_join(member, answer)

        core.write({each.member_id: each.assignment for each in core.roster}, written)

    def _refuse(self, waiter: Waiter, error: ErrorCode, member_id: str) -> None:
        self._core.answer(waiter, JoinGroupResponse(error, member_id))
