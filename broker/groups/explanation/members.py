"""Each member's session, and what its group waits for it to do."""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.broker.groups.classic.group import ClassicGroup
from barnabas.broker.groups.classic.member import ClassicGroupMember
from barnabas.broker.groups.classic.rebalance import JOIN as JOIN_PHASE
from barnabas.broker.groups.classic.rebalance import SYNC as SYNC_PHASE
from barnabas.broker.groups.consumer.group import JOIN, REBALANCE, SYNC, ConsumerGroup
from barnabas.broker.groups.consumer.member import ConsumerGroupMember, MemberState
from barnabas.broker.groups.group import Group, GroupState, GroupType
from barnabas.broker.groups.share.group import ShareGroup
from barnabas.broker.groups.share.member import ShareGroupMember
from barnabas.broker.groups.timers import session_of
from barnabas.protocol.messages.groups.explain_group import MemberTiming, WaitsFor


def member_timings(group: Group, session_timeout_ms: int) -> list[MemberTiming]:
    """Return the members of a group, with ids that were handed out and with which no client joined yet.

    `session_timeout_ms`: that of the group's members, unless it is a classic group.
    """
    if isinstance(group, ClassicGroup):
        return list(_classic(group))
    if isinstance(group, ConsumerGroup):
        return [_consumer(group, each, session_timeout_ms) for each in group.members.values()]
    if isinstance(group, ShareGroup):
        return [_share(group, each, session_timeout_ms) for each in group.members.values()]
    if group.group_type is GroupType.STREAMS:
        from barnabas.broker.groups.streams.explanation import streams_timings  # only if there are any

        return streams_timings(group, session_timeout_ms)
    return []


def _share(group: ShareGroup, member: ShareGroupMember, session_timeout_ms: int) -> MemberTiming:
    is_told = member.member_epoch == group.assignment_epoch
    return MemberTiming(
        member.member_id,
        None,
        member.client_id,
        member.client_host.removeprefix("/"),
        session_timeout_ms,
        group.timers.left_ms(session_of(member.member_id)),
        "" if is_told else WaitsFor.HEARTBEAT.value,
    )


def _classic(group: ClassicGroup) -> Iterator[MemberTiming]:
    left_ms = group.timers.left_ms
    for member in group.roster:
        waits, wait_left = _classic_wait(group, member)
        yield MemberTiming(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host.removeprefix("/"),
            member.session_timeout_ms,
            None if member.satisfies_heartbeat else left_ms(session_of(member.member_id)),
            waits,
            wait_left,
        )
    for member_id in sorted(group.roster.pending_join):
        left = left_ms(session_of(member_id))
        yield MemberTiming(member_id, None, "", "", 0, left, WaitsFor.JOIN.value, left)


def _classic_wait(group: ClassicGroup, member: ClassicGroupMember) -> tuple[str, int | None]:
    if group.state is GroupState.PREPARING_REBALANCE:
        left = group.timers.left_ms(JOIN_PHASE)
        return (WaitsFor.JOIN if member.joining is None else WaitsFor.OTHER_MEMBERS).value, left
    if member.member_id in group.roster.pending_sync:
        return WaitsFor.SYNC.value, group.timers.left_ms(SYNC_PHASE)
    if member.syncing is not None:
        return WaitsFor.OTHER_MEMBERS.value, group.timers.left_ms(SYNC_PHASE)
    return "", None


def _consumer(group: ConsumerGroup, member: ConsumerGroupMember, session_timeout_ms: int) -> MemberTiming:
    waits, wait_left = _consumer_wait(group, member)
    return MemberTiming(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host.removeprefix("/"),
        session_timeout_ms if member.classic is None else member.classic.session_timeout_ms,
        group.timers.left_ms(session_of(member.member_id)),
        waits,
        wait_left,
    )


def _consumer_wait(group: ConsumerGroup, member: ConsumerGroupMember) -> tuple[str, int | None]:
    left_ms = group.timers.left_ms
    for kind, waits in ((JOIN, WaitsFor.JOIN), (SYNC, WaitsFor.SYNC)):
        left = left_ms((kind, member.member_id))
        if left is not None:
            return waits.value, left
    if member.state == MemberState.UNREVOKED_PARTITIONS:
        return WaitsFor.REVOCATION.value, left_ms((REBALANCE, member.member_id))
    if member.state == MemberState.UNRELEASED_PARTITIONS:
        return WaitsFor.OTHER_MEMBERS.value, None
    return ("", None) if member.is_reconciled_to(group.assignment_epoch) else (WaitsFor.HEARTBEAT.value, None)
