"""JoinGroup in a classic group.

    without member id     a static member takes the place of the one with its instance id, or joins as a new one; a
                          dynamic member gets an id to join with (MEMBER_ID_REQUIRED), or before version 4 joins
    id handed out         joins with it
    member                joins the rebalance in progress. Otherwise it begins one, if it leads or its metadata changed,
                          or gets the present generation once more

Source: Kafka's GroupMetadataManager (classicGroupJoinToClassicGroup and the methods that it calls).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from barnabas.broker.groups.classic.member import ClassicGroupMember, protocols_of
from barnabas.broker.groups.classic.rebalance import maybe_complete, prepare, prepare_or_complete
from barnabas.broker.groups.group import GroupState
from barnabas.broker.groups.timers import session_of
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.groups.explain_group import GroupEventKind
from barnabas.protocol.messages.groups.join_group import NO_MEMBER_ID, JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.groups.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from barnabas.broker.groups.classic.actions import Waiter
    from barnabas.broker.groups.classic.group import ClassicGroup
    from barnabas.broker.groups.client import JoiningClient

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60 * 1000
"""A new member whose client went away while it waited for its first response is removed after this time."""


def join(group: ClassicGroup, request: JoinGroupRequest, client: JoiningClient, waiter: Waiter) -> None:
    """Respond now, or with the next generation."""
    member_id = request.member_id
    if group.state is GroupState.DEAD:
        _refuse(group, waiter, ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id)
    elif not _has_room(group, member_id):
        member = group.roster.get(member_id)
        if member is not None:
            group.remove(member)
        else:
            group.forget_pending(member_id)
        _refuse(group, waiter, ErrorCode.GROUP_MAX_SIZE_REACHED, NO_MEMBER_ID)
        maybe_complete(group)
    elif not _fits(group, request):
        _refuse(group, waiter, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)
    elif member_id == NO_MEMBER_ID:
        _join_new(group, request, client, waiter)
    elif member_id in group.roster.pending_join:
        _add(group, member_id, request, client, waiter)
    else:
        try:
            member = group.validate_member(member_id, request.group_instance_id)
        except BrokerError as error:
            _refuse(group, waiter, error.code, member_id)
        else:
            _join_again(group, member, request, waiter)


def _has_room(group: ClassicGroup, member_id: str) -> bool:
    """Apply group.max.size: members keep their places, except in a rebalance, where the first to join have them."""
    member = group.roster.get(member_id)
    if group.state is GroupState.PREPARING_REBALANCE:
        is_in = member is not None and member.joining is not None
        return is_in or group.roster.joining < group.settings.max_size
    if group.state is GroupState.EMPTY:
        return True
    return member is not None or len(group.roster) < group.settings.max_size


def _fits(group: ClassicGroup, request: JoinGroupRequest) -> bool:
    if not request.protocol_type or not request.protocols:
        return False
    if group.state is GroupState.EMPTY:
        return True
    names = [protocol.name for protocol in request.protocols]
    return request.protocol_type == group.protocol_type and group.roster.has_candidate(names)


def _join_new(group: ClassicGroup, request: JoinGroupRequest, client: JoiningClient, waiter: Waiter) -> None:
    instance_id = request.group_instance_id
    member_id = f"{client.client_id if instance_id is None else instance_id}-{uuid4()}"
    if instance_id is not None:
        current = group.roster.get(group.roster.static_id(instance_id) or NO_MEMBER_ID)
        if current is not None:
            _replace(group, current, member_id, request, waiter)
        else:
            _add(group, member_id, request, client, waiter)
    elif request.requires_known_member_id:
        group.roster.pending_join.add(member_id)
        group.timers.schedule(session_of(member_id), request.session_timeout_ms)
        _refuse(group, waiter, ErrorCode.MEMBER_ID_REQUIRED, member_id)
    else:
        _add(group, member_id, request, client, waiter)


def _add(group: ClassicGroup, member_id: str, request: JoinGroupRequest, client: JoiningClient, waiter: Waiter) -> None:
    member = ClassicGroupMember(
        member_id,
        group_instance_id=request.group_instance_id,
        client_id=client.client_id,
        client_host=client.host,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        session_timeout_ms=request.session_timeout_ms,
        protocols=protocols_of(request),
    )
    member.is_new = True
    if group.state is GroupState.PREPARING_REBALANCE and group.previous_state is GroupState.EMPTY:
        group.initial.has_newcomer = True
    if not len(group.roster):
        group.protocol_type = request.protocol_type
    group.roster.add(member)
    group.report(GroupEventKind.JOINED, member, request.reason or "")
    group.wait_for_join(member, waiter)
    group.extend_session(member, NEW_MEMBER_JOIN_TIMEOUT_MS)
    prepare_or_complete(group, f"a new member joins, reason={request.reason or 'none given'}")


def _join_again(group: ClassicGroup, member: ClassicGroupMember, request: JoinGroupRequest, waiter: Waiter) -> None:
    is_leader = group.roster.leader == member.member_id
    is_same = member.matches(protocols_of(request))
    if group.state is GroupState.PREPARING_REBALANCE:
        _update(group, member, request, waiter)
        maybe_complete(group)
    elif group.state is GroupState.COMPLETING_REBALANCE and is_same:
        group.answer(waiter, group.joined(member, with_members=is_leader))  # the first response was lost
    elif group.state is GroupState.STABLE and is_same and not is_leader:
        group.answer(waiter, group.joined(member, with_members=False))
    else:
        _update(group, member, request, waiter)
        group.report(GroupEventKind.JOINED_AGAIN, member, request.reason or "")
        member_kind = "the leader" if is_leader else "a member with new metadata"
        prepare_or_complete(group, f"{member_kind} joins again, reason={request.reason or 'none given'}")


def _update(group: ClassicGroup, member: ClassicGroupMember, request: JoinGroupRequest, waiter: Waiter) -> None:
    group.roster.update(member, protocols_of(request))
    member.rebalance_timeout_ms = request.rebalance_timeout_ms
    member.session_timeout_ms = request.session_timeout_ms
    group.wait_for_join(member, waiter)


def _replace(
    group: ClassicGroup, member: ClassicGroupMember, member_id: str, request: JoinGroupRequest, waiter: Waiter
) -> None:
    """Give a restarted static member its new id, and fence requests that wait under the old one."""
    old_id = member.member_id
    group.answer_join(member, JoinGroupResponse(error=ErrorCode.FENCED_INSTANCE_ID, member_id=old_id))
    group.answer_sync(member, SyncGroupResponse(error=ErrorCode.FENCED_INSTANCE_ID))
    old_leader = group.roster.leader
    before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
    group.timers.cancel(session_of(old_id))
    group.roster.rename(member, member_id)
    group.report(GroupEventKind.JOINED_AGAIN, member, request.reason or "")
    _update(group, member, request, waiter)
    group.extend_session(member)
    if group.state is GroupState.COMPLETING_REBALANCE:
        prepare(group, "a static member came back")
    elif group.state is not GroupState.STABLE:
        maybe_complete(group)
    elif group.roster.select_protocol() != group.protocol:
        prepare(group, "a static member came back and changes the assignor")
    else:
        _keep_generation(group, member, old_id, old_leader, before, request)


def _keep_generation(
    group: ClassicGroup,
    member: ClassicGroupMember,
    old_id: str,
    old_leader: str | None,
    before: tuple[Mapping[str, bytes], int, int],
    request: JoinGroupRequest,
) -> None:
    """Let the static member continue with its assignment once its new id is written; no rebalance follows."""
    new_id, generation = member.member_id, group.generation

    def written(error: ErrorCode) -> None:
        if group.roster.get(new_id) is not member or member.joining is None:
            return  # it left, was replaced or joined a rebalance meanwhile, which answers it
        if group.generation != generation or group.state is not GroupState.STABLE:
            return
        if error != ErrorCode.NONE:
            group.answer_join(member, JoinGroupResponse(error=error))
            group.timers.cancel(session_of(new_id))
            group.roster.rename(member, old_id)
            group.roster.update(member, before[0])
            _, member.rebalance_timeout_ms, member.session_timeout_ms = before
            group.extend_session(member)
            return
        if request.can_skip_assignment:
            is_leader = group.roster.leader == new_id
            response = group.joined(member, with_members=is_leader, skip_assignment=is_leader)
        else:
            # With the leader's old id a client that cannot skip the assignment does not assign again.
            response = group.joined(member, with_members=False)
            response.leader = old_leader or ""
        group.answer_join(member, response)

    group.write({each.member_id: each.assignment for each in group.roster}, written)


def _refuse(group: ClassicGroup, waiter: Waiter, error: ErrorCode, member_id: str) -> None:
    group.answer(waiter, JoinGroupResponse(error=error, member_id=member_id))
