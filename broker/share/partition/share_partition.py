"""SharePartition: a group's records in flight of one partition, as a state machine without I/O or clock.

Its user fetches from `next_fetch_offset`, lets a member `acquire` what was read, and carries out the changes that
members and time make: each is a `Change`, whose `batches` are written to the share coordinator before `complete`.

    acquire         a fetched batch is acquired as a whole, whatever its size: batch_optimized; at most the records
                    that the member asked for with record_limit
    deliveries      a record that nobody acknowledged within `delivery_count_limit` deliveries is archived. From half
                    of the limit on, at least 2, fewer and fewer records are delivered together, and in the last
                    delivery each alone, so that one record that makes its consumers crash does not take others along
    locks           at most `partition_max_record_locks` records from the start to the end offset

Errors of acknowledgements: INVALID_RECORD_STATE for a record that the member has not acquired, or whose last change is
being written; INVALID_REQUEST for offsets beyond those in flight. Records below the start offset are ignored. Source:
Kafka's SharePartition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.share.partition.acquisition import Acquisition
from barnabas.broker.share.partition.in_flight import InFlightBatch, InFlightState, RecordState
from barnabas.broker.share.partition.window import Window
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.share.state_records import StateBatch

if TYPE_CHECKING:
    from barnabas.broker.groups.share.settings import ShareGroupSettings
    from barnabas.broker.share.partition.acquisition import Fetched
    from barnabas.protocol.messages.share.share_fetch import AcquiredRecords

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
"""Acknowledgement types."""

_LEAST_CLEANED: Final = 1000
"""Ends of locks up to which those that are over are kept."""

_STATES = {
    GAP: RecordState.ARCHIVED,
    ACCEPT: RecordState.ACKNOWLEDGED,
    RELEASE: RecordState.AVAILABLE,
    REJECT: RecordState.ARCHIVED,
}


class Acknowledgement(NamedTuple):
    """Offsets from first to last with one type for all, or one for each."""

    first_offset: int
    last_offset: int
    types: Sequence[int]


class Change(NamedTuple):
    """A change that has begun: `batches` to write, and the states to complete then."""

    batches: list[StateBatch]
    states: list[InFlightState]


class SharePartition:
    """See the module. `settings` returns the group's settings, which may change."""

    def __init__(self, settings: Callable[[], ShareGroupSettings]) -> None:
        self.window = Window()
        self._settings = settings
        self._locks: list[tuple[float, int, int]] = []
        """A heap of ends of locks and the offsets that had them; some are over before, or were renewed."""
        self._clean_at = _LEAST_CLEANED

    # -- fetching

    def next_fetch_offset(self) -> int:
        """Return the first offset that can be acquired, if the log has it."""
        return self.window.next_fetch_offset()

    @property
    def can_acquire(self) -> bool:
        """Whether a member may have more records: something was released, or there are fewer locks than allowed."""
        window = self.window
        if window.next_fetch_offset() != window.end_offset + 1:
            return True
        return window.in_flight < self._settings().partition_max_record_locks

    def most_new(self, max_records: int) -> int:
        """Return how many offsets after the end offset a member may acquire, without the rest of the last batch."""
        free = self._settings().partition_max_record_locks - self.window.in_flight
        return max(0, min(max_records, free))

    def acquire(
        self, member_id: str, fetched: Fetched, *, batch_size: int, max_records: int, is_limited: bool, now_ms: float
    ) -> list[AcquiredRecords]:
        """Give a member records that were fetched, at most `max_records` or the batch in which that number ends.

        `batch_size`: the number of records of a batch of the answer. `is_limited`: record_limit, exactly `max_records`.
        """
        settings = self._settings()
        deadline_ms = now_ms + settings.record_lock_duration_ms
        acquisition = Acquisition(
            self.window,
            member_id,
            deadline_ms,
            count_limit=settings.delivery_count_limit,
            batch_size=batch_size,
            is_limited=is_limited,
        )
        acquired = acquisition.run(fetched, max_records, settings.partition_max_record_locks)
        self.window.advance()  # what the log has no longer, and aborted records, are done without an acknowledgement
        for each in acquired:
            self._add_lock(deadline_ms, each.first_offset, each.last_offset)
        return acquired

    # -- changes

    def acknowledge(self, member_id: str, acknowledgements: Sequence[Acknowledgement], now_ms: float) -> Change:
        """Begin what a member acknowledges: all of it, or nothing. Raises BrokerError."""
        change = Change([], [])
        settings = self._settings()  # once: with configs of its own, a group's settings are computed
        try:
            for each in acknowledgements:
                if each.last_offset >= self.window.start_offset:
                    self._acknowledge(member_id, each, change, now_ms, settings)
        except BrokerError:
            self.complete(change, is_written=False, now_ms=now_ms)
            raise
        return change

    def release_member(self, member_id: str) -> Change:
        """Begin to release everything that a member has acquired."""
        change = Change([], [])
        count_limit = self._settings().delivery_count_limit
        for batch in self.window:
            for first, last, state in self._split_at_start(batch, batch.first_offset, batch.last_offset):
                if state.state is RecordState.ACQUIRED and state.member_id == member_id:
                    self._begin_end(state, first, last, RecordState.AVAILABLE, change, count_limit)
        return change

    def complete(self, change: Change, *, is_written: bool, now_ms: float) -> bool:
        """Keep a change that was written, or undo it; return whether the start offset moved."""
        window = self.window
        for batch, state in zip(change.batches, change.states, strict=True):
            state.complete(is_written=is_written, now_ms=now_ms)
            if state.state is RecordState.AVAILABLE:
                window.must_look = True
            if RecordState(batch.delivery_state).is_final and not state.state.is_final:
                window.delivery_complete_count -= window.counted(batch.first_offset, batch.last_offset)
        # A change that was undone after the lock's end may have archived what was out of deliveries.
        return bool(change.states) and window.advance()

    # -- time

    @property
    def next_deadline_ms(self) -> float | None:
        """When the next lock runs out; None if there is none. It may be over before."""
        return self._locks[0][0] if self._locks else None

    def expire(self, now_ms: float) -> list[StateBatch]:
        """Release what was acquired until `now_ms`; return what is to be written. It is released whether or not."""
        batches: list[StateBatch] = []
        count_limit = self._settings().delivery_count_limit
        while self._locks and self._locks[0][0] <= now_ms:
            _, first_offset, last_offset = heappop(self._locks)
            floor = self.window.floor(first_offset)
            begin = first_offset if floor is None else floor.first_offset
            for batch in self.window.between(begin, last_offset):
                for first, last, state in self._split_at_start(batch, first_offset, last_offset):
                    if state.deadline_ms is not None and state.deadline_ms <= now_ms:
                        self._expire(state, first, last, batches, count_limit)
        if batches:
            self.window.advance()
        return batches

    def _add_lock(self, deadline_ms: float, first: int, last: int) -> None:
        heappush(self._locks, (deadline_ms, first, last))
        if len(self._locks) >= self._clean_at:
            # A member that renews its locks all the time leaves an old end behind with each renewal.
            self._locks = sorted(
                (state.deadline_ms, first, last)
                for batch in self.window
                for first, last, state in batch.parts()
                if state.deadline_ms is not None
            )
            self._clean_at = max(_LEAST_CLEANED, 2 * len(self._locks))

    def _expire(self, state: InFlightState, first: int, last: int, batches: list[StateBatch], count_limit: int) -> None:
        window = self.window
        released = RecordState.AVAILABLE if last >= window.start_offset else RecordState.ARCHIVED
        if not state.end(released, count_limit):
            return  # a change of it is being written, and will find that the lock has run out
        state.deadline_ms = None
        batches.append(StateBatch(first, last, state.state, state.delivery_count))
        if state.state is RecordState.AVAILABLE:
            window.must_look = True
        else:
            window.delivery_complete_count += window.counted(first, last)

    def _acknowledge(
        self,
        member_id: str,
        given: Acknowledgement,
        change: Change,
        now_ms: float,
        settings: ShareGroupSettings,
    ) -> None:
        window = self.window
        first_offset = max(given.first_offset, window.start_offset)
        floor = window.floor(first_offset)
        if floor is None:
            if given.first_offset >= window.start_offset or (floor := window.first) is None:
                raise _invalid("the offsets are not in flight")
        found = window.between(floor.first_offset, given.last_offset)
        if not found or found[-1].last_offset < first_offset or given.last_offset > found[-1].last_offset:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "the offsets are beyond the acquired records")
        for batch in found:
            if batch.last_offset < first_offset:
                continue
            whole = batch.whole
            if whole is not None:
                self._ensure_acquired(whole, member_id)
                covered = batch.first_offset >= first_offset and batch.last_offset <= given.last_offset
                if not covered or len(given.types) > 1:
                    batch.split()
            for first, last, state in batch.parts_between(first_offset, given.last_offset):
                self._ensure_acquired(state, member_id)
                kind = given.types[0] if len(given.types) == 1 else given.types[first - given.first_offset]
                if kind == RENEW:
                    self._renew(state, first, last, now_ms, settings)
                else:
                    self._begin_end(state, first, last, _STATES[kind], change, settings.delivery_count_limit)

    def _renew(self, state: InFlightState, first: int, last: int, now_ms: float, settings: ShareGroupSettings) -> None:
        if not settings.may_renew:
            raise _invalid("the group's share.renew.acknowledge.enable is false: locks are not renewed")
        deadline_ms = now_ms + settings.record_lock_duration_ms
        if deadline_ms != state.deadline_ms:
            state.deadline_ms = deadline_ms
            self._add_lock(deadline_ms, first, last)

    def _begin_end(
        self, state: InFlightState, first: int, last: int, end: RecordState, change: Change, count_limit: int
    ) -> None:
        window = self.window
        if last < window.start_offset:
            end = RecordState.ARCHIVED
        if not state.begin_end(end, count_limit):
            raise _invalid("a change of the record is being written")
        change.states.append(state)
        change.batches.append(StateBatch(first, last, state.state, state.delivery_count))
        if state.state.is_final:
            window.delivery_complete_count += window.counted(first, last)

    def _split_at_start(self, batch: InFlightBatch, first: int, last: int) -> list[tuple[int, int, InFlightState]]:
        """Return parts of a batch, which is split if the start offset is in it: its parts have different ends."""
        whole = batch.whole
        if whole is not None and whole.state is RecordState.ACQUIRED and not whole.is_changing:
            if batch.first_offset < self.window.start_offset <= batch.last_offset:
                batch.split()
        return list(batch.parts_between(first, last))

    @staticmethod
    def _ensure_acquired(state: InFlightState, member_id: str) -> None:
        if state.is_changing:
            raise _invalid("a change of the record is being written")
        if state.state is not RecordState.ACQUIRED:
            raise _invalid("the record is not acquired")
        if state.member_id != member_id:
            raise _invalid("the record is acquired by another member")


def _invalid(message: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_RECORD_STATE, message)
