"""How a classic group gets from one generation to the next.

    prepare    members that wait for an assignment have to join again. The group waits until all members joined, at most
               for the longest of their rebalance timeouts. In the initial rebalance of an empty group the members to
               wait for are unknown: it ends after group.initial.rebalance.delay.ms, which begins again with each new
               member, up to the rebalance timeout
    complete   dynamic members that did not join are removed (static ones stay until their session ends), a member that
               joined leads, the members' votes select the assignor, and all joins are answered with the generation.
               A group without members becomes Empty, and its record is written
    sync       members that have not synced after the rebalance timeout are removed, and a new rebalance begins

Source: Kafka's GroupMetadataManager (prepareRebalance, completeClassicGroupJoin, expirePendingSync).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from barnabas.broker.groups.classic.state import CAN_REBALANCE
from barnabas.broker.groups.group import GroupState
from barnabas.broker.groups.timers import TimerKey
from barnabas.broker.printable import printable
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups.explain_group import GroupEventKind

if TYPE_CHECKING:
    from barnabas.broker.groups.classic.group import ClassicGroup

logger = logging.getLogger(__name__)

JOIN: Final[TimerKey] = ("join", "")
"""The deadline of the join phase."""
SYNC: Final[TimerKey] = ("sync", "")
"""The deadline of the sync phase."""


def tick(group: ClassicGroup) -> None:
    """Handle the deadlines that have passed."""
    key = group.timers.pop_due()
    while key is not None:
        if key == JOIN:
            _end_join(group)
        elif key == SYNC:
            _end_sync(group)
        else:
            _end_session(group, key[1])
        key = group.timers.pop_due()


def prepare_or_complete(group: ClassicGroup, reason: str) -> None:
    """Begin a rebalance, or complete the one in progress if no member is missing any more."""
    if group.state in CAN_REBALANCE:
        prepare(group, reason)
    else:
        maybe_complete(group)


def prepare(group: ClassicGroup, reason: str) -> None:
    """Begin a rebalance."""
    if group.state is GroupState.COMPLETING_REBALANCE:
        group.propagate_assignment({}, ErrorCode.REBALANCE_IN_PROGRESS)
    group.roster.pending_sync.clear()
    group.timers.cancel(SYNC)
    is_initial = group.state is GroupState.EMPTY
    group.transition_to(GroupState.PREPARING_REBALANCE)
    logger.log(
        _level(group),
        "group %s rebalances, generation=%d members=%d: %s",
        printable(group.group_id),
        group.generation,
        len(group.roster),
        printable(reason),
    )
    group.report(GroupEventKind.REBALANCE_BEGAN, detail=reason)
    if is_initial:
        delay_ms = group.settings.initial_rebalance_delay_ms
        _delay(group, delay_ms, max(group.roster.rebalance_timeout_ms - delay_ms, 0))
    elif group.roster.all_joined:
        _complete(group)
    else:
        group.timers.schedule(JOIN, group.roster.rebalance_timeout_ms)


def maybe_complete(group: ClassicGroup) -> None:
    """End the join phase if all members joined; the initial rebalance waits for its deadline."""
    if group.state is not GroupState.PREPARING_REBALANCE or group.previous_state is GroupState.EMPTY:
        return
    if group.roster.all_joined:
        _complete(group)


def _end_join(group: ClassicGroup) -> None:
    if group.state is not GroupState.PREPARING_REBALANCE:
        return
    initial = group.initial
    if initial.remaining_ms and initial.has_newcomer:
        delay_ms = min(group.settings.initial_rebalance_delay_ms, initial.remaining_ms)
        _delay(group, delay_ms, max(initial.remaining_ms - initial.delay_ms, 0))
    else:
        _complete(group)


def _end_sync(group: ClassicGroup) -> None:
    late = sorted(group.roster.pending_sync)
    if not late or group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
        return
    for member_id in late:
        member = group.roster.get(member_id)
        if member is not None:
            group.report(GroupEventKind.SYNC_TIMED_OUT, member)
            group.remove(member)
    prepare(group, f"{len(late)} members did not sync in time")


def _end_session(group: ClassicGroup, member_id: str) -> None:
    if member_id in group.roster.pending_join:
        group.roster.remove(member_id)
        _complete_without(group)
        return
    member = group.roster.get(member_id)
    if member is None:
        return
    if member.satisfies_heartbeat:
        # The member waits for the broker, perhaps for a write that takes longer than its session: check again later.
        group.extend_session(member)
        return
    group.report(GroupEventKind.SESSION_ENDED, member, f"session.timeout.ms={member.session_timeout_ms}")
    group.remove(member)
    if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
        prepare(group, "a member's session ended")
    else:
        _complete_without(group)


def _complete_without(group: ClassicGroup) -> None:
    """Complete the rebalance if it only waited for a member that is removed now, an initial one too."""
    if group.state is GroupState.PREPARING_REBALANCE and group.roster.all_joined:
        _complete(group)


def _complete(group: ClassicGroup) -> None:
    """Form the next generation of the members that joined."""
    roster = group.roster
    group.timers.cancel(JOIN)
    group.initial.remaining_ms = None
    group.initial.has_newcomer = False
    late = [member for member in roster if member.joining is None and not member.is_static]
    for member in late:
        group.report(GroupEventKind.JOIN_TIMED_OUT, member)
        group.remove(member)
    if late:
        name = printable(group.group_id)
        logger.info("group %s goes on without %d members that did not join in time", name, len(late))
    if len(roster) and not roster.elect_joined_leader():
        group.timers.schedule(JOIN, roster.rebalance_timeout_ms)  # only static members are left, and none has joined
        return
    group.generation += 1
    roster.pending_sync.clear()
    if not len(roster):
        _become_empty(group)
        return
    group.protocol = roster.select_protocol()
    group.transition_to(GroupState.COMPLETING_REBALANCE)
    logger.log(
        _level(group),
        "group %s has a generation, generation=%d members=%d protocol=%s",
        printable(group.group_id),
        group.generation,
        len(roster),
        printable(group.protocol or ""),
    )
    for member in roster:
        group.answer_join(member, group.joined(member, with_members=member.member_id == roster.leader))
        group.extend_session(member)
        member.is_new = False
        roster.pending_sync.add(member.member_id)
    group.timers.schedule(SYNC, roster.rebalance_timeout_ms)


def _level(group: ClassicGroup) -> int:
    """Return the level of a rebalance's log lines: the refused record that a rebalance repeats has a warning."""
    return logging.DEBUG if group.is_refused else logging.INFO


def _become_empty(group: ClassicGroup) -> None:
    group.protocol = None
    group.transition_to(GroupState.EMPTY)
    logger.info("group %s is empty, generation=%d", printable(group.group_id), group.generation)
    group.write({}, _ignore_outcome)


def _ignore_outcome(_: ErrorCode) -> None:
    """Do nothing: a failed write changes nothing here, and the caller logs it."""


def _delay(group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
    group.initial.delay_ms, group.initial.remaining_ms = delay_ms, remaining_ms
    group.initial.has_newcomer = False
    group.timers.schedule(JOIN, delay_ms)
