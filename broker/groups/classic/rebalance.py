"""How a classic group gets from one generation to the next.

    prepare    who waits for an assignment is told to join again; then members are waited for, for the largest of
               their rebalance timeouts. The first rebalance of an empty group is another: nobody is known who could
               be waited for, so it ends after group.initial.rebalance.delay.ms, which starts again with each member
               that comes, up to the rebalance timeout
    complete   dynamic members that did not join are removed (static ones stay until their session ends), a leader that
               joined is found, the assignor voted for, and everybody told the generation; without members the group is
               empty, which is written down
    syncing    who has not synced after the rebalance timeout is removed, and a new rebalance begins

Source: Kafka's GroupMetadataManager (prepareRebalance, completeClassicGroupJoin, expirePendingSync).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.broker.groups.classic.core import ignore_outcome
from barnabas.broker.groups.classic.state import CAN_REBALANCE, GroupState
from barnabas.broker.groups.classic.timers import JOIN, SYNC, session_of
from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.groups.classic.core import GroupCore

logger = logging.getLogger(__name__)


class Rebalance:
    """The generations of one group."""

    __slots__ = ("_core", "_delay_ms", "_remaining_ms", "has_newcomer")

    def __init__(self, core: GroupCore) -> None:
        self._core = core
        self._delay_ms = 0
        self._remaining_ms: int | None = None
        """Of the first rebalance: for how long more it may be put off. None: this is not the first one."""
        self.has_newcomer = False
        """Whether somebody came since the first rebalance was put off last."""

    def prepare_or_complete(self, reason: str) -> None:
        """Begin a rebalance, or end the one that is under way if this was the last thing missing."""
        if self._core.state in CAN_REBALANCE:
            self.prepare(reason)
        else:
            self.maybe_complete()

    def prepare(self, reason: str) -> None:
        """Begin a rebalance."""
        core = self._core
        if core.state == GroupState.COMPLETING_REBALANCE:
            core.propagate_assignment({}, ErrorCode.REBALANCE_IN_PROGRESS)
        core.roster.pending_sync.clear()
        core.timers.cancel(SYNC)
        is_first = core.state == GroupState.EMPTY
        core.transition_to(GroupState.PREPARING_REBALANCE)
        logger.info(
            "group %r rebalances, generation=%d members=%d: %s",
            core.group_id,
            core.generation,
            len(core.roster),
            reason,
        )
        if is_first:
            delay_ms = core.settings.initial_rebalance_delay_ms
            self._put_off(delay_ms, max(core.roster.rebalance_timeout_ms - delay_ms, 0))
        elif core.roster.all_joined:
            self.complete()
        else:
            core.timers.schedule(JOIN, core.roster.rebalance_timeout_ms)

    def maybe_complete(self) -> None:
        """End the joining if nobody is missing; the first rebalance waits for its time."""
        core = self._core
        if core.state != GroupState.PREPARING_REBALANCE or core.previous_state == GroupState.EMPTY:
            return
        if core.roster.all_joined:
            self.complete()

    def joining_ends(self) -> None:
        """The joining's deadline has passed."""
        core = self._core
        if core.state != GroupState.PREPARING_REBALANCE:
            return
        if self._remaining_ms and self.has_newcomer:
            delay_ms = min(core.settings.initial_rebalance_delay_ms, self._remaining_ms)
            self._put_off(delay_ms, max(self._remaining_ms - self._delay_ms, 0))
        else:
            self.complete()

    def syncing_ends(self) -> None:
        """The syncing's deadline has passed."""
        core = self._core
        late = sorted(core.roster.pending_sync)
        if not late or core.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            return
        for member_id in late:
            member = core.roster.get(member_id)
            if member is not None:
                core.remove(member)
        self.prepare(f"{len(late)} members did not sync in time")

    def complete(self) -> None:
        """Form the next generation of those that are there."""
        core = self._core
        roster = core.roster
        core.timers.cancel(JOIN)
        self._remaining_ms = None
        self.has_newcomer = False
        late = [member for member in roster if member.joining is None and not member.is_static]
        for member in late:
            core.remove(member)
        if late:
            logger.info("group %r goes on without %d members that did not join in time", core.group_id, len(late))
        if len(roster) and not roster.elect_joined_leader():
            core.timers.schedule(JOIN, roster.rebalance_timeout_ms)  # static members only, and none has joined
            return
        core.generation += 1
        roster.pending_sync.clear()
        if not len(roster):
            self._end_empty()
            return
        core.protocol = roster.select_protocol()
        core.transition_to(GroupState.COMPLETING_REBALANCE)
        logger.info(
            "group %r has a generation, generation=%d members=%d protocol=%s",
            core.group_id,
            core.generation,
            len(roster),
            core.protocol,
        )
        for member in roster:
            core.answer_join(member, core.joined(member, with_members=member.member_id == roster.leader))
            core.extend_session(member)
            member.is_new = False
            roster.pending_sync.add(member.member_id)
        core.timers.schedule(SYNC, roster.rebalance_timeout_ms)

    def session_ends(self, member_id: str) -> None:
        """Nothing was heard of a member for its session's time."""
        core = self._core
        if member_id in core.roster.pending_join:
            core.roster.remove(member_id)
            self._one_less()
            return
        member = core.roster.get(member_id)
        if member is None:
            return
        if member.satisfies_heartbeat:
            # It waits for us, perhaps for a write that takes longer than its session: looked at again later.
            core.extend_session(member)
            return
        core.remove(member)
        if core.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self.prepare("a member's session ended")
        else:
            self._one_less()

    def forget_pending(self, member_id: str) -> None:
        """An id that was given out is not going to be used."""
        self._core.timers.cancel(session_of(member_id))
        self._core.roster.remove(member_id)

    def _one_less(self) -> None:
        core = self._core
        if core.state == GroupState.PREPARING_REBALANCE and core.roster.all_joined:
            self.complete()

    def _end_empty(self) -> None:
        core = self._core
        core.protocol = None
        core.transition_to(GroupState.EMPTY)
        logger.info("group %r is empty, generation=%d", core.group_id, core.generation)
        core.write({}, ignore_outcome)

    def _put_off(self, delay_ms: int, remaining_ms: int) -> None:
        self._delay_ms, self._remaining_ms = delay_ms, remaining_ms
        self.has_newcomer = False
        self._core.timers.schedule(JOIN, delay_ms)
