"""Acquisition: which of the records that were read a member gets. Source: Kafka's SharePartition.acquire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.broker.share.partition.in_flight import InFlightBatch, InFlightState, RecordState
from barnabas.broker.share.partition.window import Window
from barnabas.protocol.messages.share.share_fetch import AcquiredRecords

_LEAST_THROTTLED: Final = 2
"""Deliveries of a record before fewer are delivered with it, whatever the limit."""


class Fetched(NamedTuple):
    """What was read from `offset` on: first and last offsets of the stored batches; `aborted` ones among them."""

    offset: int
    batches: Sequence[tuple[int, int]]
    aborted: Sequence[tuple[int, int]] = ()


class Acquisition:
    """One acquisition by one member."""

    def __init__(
        self,
        window: Window,
        member_id: str,
        deadline_ms: float,
        *,
        count_limit: int,
        batch_size: int,
        is_limited: bool,
    ) -> None:
        self._window = window
        self._member_id = member_id
        self._deadline_ms = deadline_ms
        self._count_limit = count_limit
        self._throttled_from = max(_LEAST_THROTTLED, (count_limit + 1) // 2)
        self._batch_size = batch_size
        self._is_limited = is_limited
        self._batches: Sequence[tuple[int, int]] = ()
        self._acquired: list[AcquiredRecords] = []
        self._count = 0

    def run(self, fetched: Fetched, max_records: int, max_locks: int) -> list[AcquiredRecords]:
        """Acquire at most `max_records`, or up to the end of the batch in which that number is reached."""
        window = self._window
        self._batches = fetched.batches
        if max_records <= 0 or not fetched.batches or fetched.batches[-1][1] < window.start_offset:
            return []
        last = fetched.batches[-1][1]
        allowed = min(max_records, max_locks - window.in_flight)
        if allowed <= 0:
            # Every lock is taken: only records between them, which were released.
            if fetched.offset > window.end_offset:
                return []
            allowed = min(max_records, window.end_offset - fetched.offset + 1)
            last = min(last, window.end_offset)
        self._acquire(fetched, last, allowed)
        return self._without_aborted(fetched.aborted) if fetched.aborted else self._acquired

    def _acquire(self, fetched: Fetched, last: int, allowed: int) -> None:
        window = self._window
        base = first_base = fetched.batches[0][0]
        self._archive_missing(fetched.offset, base)
        if base > last:
            return  # every lock is taken, and what was released is in the log no longer
        floor = window.floor(base)
        if floor is None:
            base = max(base, window.start_offset)
        elif floor.last_offset >= base:
            base = floor.first_offset
        known = window.between(min(first_base, base), last)
        if not known:
            self._acquire_new(base, last, allowed)
            return
        gap_from = base
        goes_on = True
        for batch in known:
            if window.gap_start is not None and self._count < allowed:
                if gap_from < batch.first_offset:
                    self._acquire_new(gap_from, batch.first_offset - 1, allowed - self._count)
                gap_from = batch.last_offset + 1
            if self._count >= allowed or not self._acquire_again(batch, first_base, last, allowed):
                goes_on = False
                break
        if goes_on and self._count < allowed and known[-1].last_offset < last:
            self._acquire_new(known[-1].last_offset + 1, last, allowed - self._count)
        if self._acquired:
            window.acquired_to(self._acquired[-1].last_offset + 1)

    def _archive_missing(self, fetch_offset: int, base: int) -> None:
        """Archive what was in flight and is in the log no longer, because of compaction."""
        if fetch_offset >= base:
            return
        window = self._window
        window.acquired_to(base)  # unlike Kafka, which would look for a gap of the log again and again
        floor = window.floor(fetch_offset)
        begin = floor.first_offset if floor is not None and floor.last_offset >= fetch_offset else fetch_offset
        window.archive(window.between(begin, base - 1), fetch_offset, base, RecordState.AVAILABLE, counts=True)

    # -- records that were delivered before

    def _acquire_again(self, batch: InFlightBatch, first: int, last: int, allowed: int) -> bool:
        """Acquire what is free of a batch in flight; return whether to go on with later ones."""
        covered = batch.first_offset >= first and batch.last_offset <= last
        is_throttled = self._is_throttled(batch, first, last)
        if is_throttled and self._count > 0:
            return False
        over_limit = self._is_limited and batch.size > allowed - self._count
        whole = batch.whole
        if whole is not None:
            if not whole.is_free:
                return True
            if covered and not over_limit and not is_throttled:
                whole.acquire(self._member_id, self._deadline_ms)
                self._acquired.append(AcquiredRecords(batch.first_offset, batch.last_offset, whole.delivery_count))
                self._count += batch.size
                return True
            batch.split()
        acquired = self._acquire_some(batch, first, last, allowed - self._count)
        self._count += acquired
        return not (is_throttled and acquired)

    def _is_throttled(self, batch: InFlightBatch, first: int, last: int) -> bool:
        if batch.whole is not None:
            return batch.whole.is_free and batch.whole.delivery_count >= self._throttled_from
        return any(
            state.is_free and state.delivery_count >= self._throttled_from
            for offset, state in batch.offsets.items()
            if first <= offset <= last
        )

    def _acquire_some(self, batch: InFlightBatch, first: int, last: int, limit: int) -> int:
        acquired: list[AcquiredRecords] = []
        throttled_limit = 0
        isolates_last = self._count_limit > 2
        for offset, state in batch.offsets.items():
            if offset < first or not state.is_free:
                continue
            if offset > last:
                break
            count = state.delivery_count
            is_last_delivery = isolates_last and count == self._count_limit - 1
            if is_last_delivery and acquired:
                break  # alone, with the next fetch
            if count >= self._throttled_from and not throttled_limit:
                throttled_limit = max(1, len(batch.offsets) >> (count - self._throttled_from + 1))
            state.acquire(self._member_id, self._deadline_ms)
            acquired.append(AcquiredRecords(offset, offset, state.delivery_count))
            if is_last_delivery or (self._is_limited and len(acquired) == limit) or len(acquired) == throttled_limit:
                break
        for each in acquired:
            before = self._acquired[-1] if self._acquired else None
            if each is not acquired[0] and before is not None and _continues(before, each):
                before.last_offset = each.last_offset
            else:
                self._acquired.append(each)
        return len(acquired)

    # -- records that were not delivered before

    def _acquire_new(self, first: int, last: int, limit: int) -> None:
        window = self._window
        if not len(window) and window.end_offset > first:
            first = window.end_offset
        if limit < last - first + 1:
            end = self._end_of_batch(first + limit - 1)
            # Loaded batches need not end where the log's do.
            last = min(end, last) if window.gap_start is not None else end
        for batch_first, batch_last in self._cut(first, last):
            state = InFlightState(RecordState.ACQUIRED, 1, self._member_id, self._deadline_ms)
            batch = InFlightBatch(batch_first, batch_last, state)
            window.add(batch)
            if self._is_limited and batch.size > limit:
                batch_last = batch_first + limit - 1
                batch.split_after(batch_last)
                window.must_look = True
            self._acquired.append(AcquiredRecords(batch_first, batch_last, 1))
            self._count += batch_last - batch_first + 1
        lowest = window.first
        if lowest is not None and lowest.first_offset == first:
            window.start_offset = first
        window.end_offset = max(window.end_offset, last)
        window.acquired_to(self._acquired[-1].last_offset + 1)

    def _cut(self, first: int, last: int) -> list[tuple[int, int]]:
        """Cut offsets at stored batches into parts of about `batch_size`, of which each is one batch in flight."""
        parts = []
        if not self._is_limited and last - first + 1 > self._batch_size:
            for base, _ in self._batches:
                if base > last:
                    break
                if base - first >= self._batch_size:
                    parts.append((first, base - 1))
                    first = base
        parts.append((first, last))
        return parts

    def _end_of_batch(self, offset: int) -> int:
        """Return the last offset of the stored batch with an offset."""
        for base, last in reversed(self._batches):
            if base <= offset:
                return last if offset <= last else offset
        return offset

    # -- aborted transactions

    def _without_aborted(self, aborted: Sequence[tuple[int, int]]) -> list[AcquiredRecords]:
        """Archive the records of aborted transactions, and leave them out of what was acquired."""
        window = self._window
        kept = self._acquired
        for first, last in aborted:
            floor = window.floor(first)
            begin = first if floor is None else floor.first_offset
            window.archive(window.between(begin, last), first, last + 1, RecordState.ACQUIRED, counts=True)
            kept = [part for each in kept for part in _without(each, first, last)]
        return kept


def _continues(before: AcquiredRecords, after: AcquiredRecords) -> bool:
    return after.first_offset == before.last_offset + 1 and after.delivery_count == before.delivery_count


def _without(acquired: AcquiredRecords, first: int, last: int) -> list[AcquiredRecords]:
    if acquired.last_offset < first or acquired.first_offset > last:
        return [acquired]
    parts = []
    if acquired.first_offset < first:
        parts.append(AcquiredRecords(acquired.first_offset, first - 1, acquired.delivery_count))
    if acquired.last_offset > last:
        parts.append(AcquiredRecords(last + 1, acquired.last_offset, acquired.delivery_count))
    return parts
