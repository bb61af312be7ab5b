"""SyncGroup in a classic group: the leader's assignment is written before any member gets it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.groups.classic.rebalance import prepare
from barnabas.broker.groups.group import GroupState
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from barnabas.broker.groups.classic.actions import Waiter
    from barnabas.broker.groups.classic.group import ClassicGroup
    from barnabas.broker.groups.classic.member import ClassicGroupMember


def sync(group: ClassicGroup, request: SyncGroupRequest, waiter: Waiter) -> None:
    """Respond with the member's assignment, now or once the leader's assignment is written."""
    try:
        member = _validate(group, request)
    except BrokerError as error:
        group.answer(waiter, SyncGroupResponse(error=error.code))
        return
    if group.state is GroupState.PREPARING_REBALANCE:
        group.answer(waiter, SyncGroupResponse(error=ErrorCode.REBALANCE_IN_PROGRESS))
        return
    group.roster.pending_sync.discard(member.member_id)
    if group.state is GroupState.STABLE:
        group.answer(waiter, group.synced(member))
        return
    group.wait_for_sync(member, waiter)
    if group.roster.leader == member.member_id:
        _assign(group, {each.member_id: each.assignment for each in request.assignments})


def _validate(group: ClassicGroup, request: SyncGroupRequest) -> ClassicGroupMember:
    if group.state is GroupState.DEAD:
        raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"group {group.group_id!r} is being deleted")
    member = group.validate_member(request.member_id, request.group_instance_id)
    if request.generation != group.generation:
        raise BrokerError(ErrorCode.ILLEGAL_GENERATION, f"the generation is {group.generation}")
    if request.protocol_type not in (None, group.protocol_type) or request.protocol not in (None, group.protocol):
        raise BrokerError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"the protocol is {group.protocol_type} {group.protocol}"
        )
    return member


def _assign(group: ClassicGroup, assignments: dict[str, bytes]) -> None:
    generation = group.generation

    def written(error: ErrorCode) -> None:
        if group.state is not GroupState.COMPLETING_REBALANCE or group.generation != generation:
            return  # a rebalance began meanwhile and answered the waiting syncs
        group.is_refused = error != ErrorCode.NONE
        if group.is_refused:
            group.propagate_assignment({}, error)
            prepare(group, f"the assignment could not be written ({error.name})")
            return
        group.propagate_assignment(assignments)
        group.transition_to(GroupState.STABLE)

    group.write(assignments, written)
