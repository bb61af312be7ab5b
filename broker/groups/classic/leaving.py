"""LeaveGroup in a classic group: members leave, and the rest rebalances once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.broker.groups.classic.rebalance import maybe_complete, prepare
from barnabas.broker.groups.group import GroupState
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.groups.explain_group import GroupEventKind
from barnabas.protocol.messages.groups.join_group import NO_MEMBER_ID
from barnabas.protocol.messages.groups.leave_group import LeavingMember, LeftMember

if TYPE_CHECKING:
    from barnabas.broker.groups.classic.group import ClassicGroup


def leave(group: ClassicGroup, members: Iterable[LeavingMember]) -> list[LeftMember]:
    """Remove the members, and return the result for each."""
    results = [
        LeftMember(member_id=each.member_id, group_instance_id=each.group_instance_id, error=_leave(group, each))
        for each in members
    ]
    if any(result.error == ErrorCode.NONE for result in results):
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            prepare(group, "members left")
        else:
            maybe_complete(group)
    return results


def _leave(group: ClassicGroup, leaving: LeavingMember) -> ErrorCode:
    if leaving.member_id in group.roster.pending_join:
        group.forget_pending(leaving.member_id)
        return ErrorCode.NONE
    try:
        if leaving.member_id == NO_MEMBER_ID:
            if leaving.group_instance_id is None:
                raise group.unknown_member(NO_MEMBER_ID)
            member_id = group.roster.static_id(leaving.group_instance_id) or NO_MEMBER_ID
            member = group.validate_member(member_id, None)
        else:
            member = group.validate_member(leaving.member_id, leaving.group_instance_id)
    except BrokerError as error:
        return error.code
    group.report(GroupEventKind.LEFT, member, leaving.reason or "")
    group.remove(member)
    return ErrorCode.NONE
