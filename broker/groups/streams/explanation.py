"""Each member's session, and what its group waits for it to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.groups.streams.group import REBALANCE, StreamsGroup
from barnabas.broker.groups.streams.member import MemberState
from barnabas.broker.groups.timers import session_of
from barnabas.protocol.messages.groups.explain_group import MemberTiming, WaitsFor

if TYPE_CHECKING:
    from barnabas.broker.groups.group import Group
    from barnabas.broker.groups.streams.member import StreamsGroupMember


def streams_timings(group: Group, session_timeout_ms: int) -> list[MemberTiming]:
    """Return the members of a streams group."""
    assert isinstance(group, StreamsGroup)
    return [_timing(group, each, session_timeout_ms) for each in group.members.values()]


def _timing(group: StreamsGroup, member: StreamsGroupMember, session_timeout_ms: int) -> MemberTiming:
    waits, wait_left = "", None
    if member.state == MemberState.UNREVOKED_TASKS:
        waits, wait_left = WaitsFor.REVOCATION.value, group.timers.left_ms((REBALANCE, member.member_id))
    elif member.state == MemberState.UNRELEASED_TASKS:
        waits = WaitsFor.OTHER_MEMBERS.value
    return MemberTiming(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host.removeprefix("/"),
        session_timeout_ms,
        group.timers.left_ms(session_of(member.member_id)),
        waits,
        wait_left,
    )
