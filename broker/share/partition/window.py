"""Window: the batches in flight of a share partition, from its start offset to its end offset.

    start offset            everything before it needs no further delivery
    end offset              the last offset that was acquired; the next one to fetch while nothing is in flight
    delivery_complete_count offsets from the start offset on that need no further delivery

Batches that were loaded may leave gaps: records that were delivered and of which no state was written. They are
delivered again, from `gap_start` on, until something beyond the loaded batches was acquired. Source: Kafka's
SharePartition.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

from barnabas.broker.share.partition.in_flight import InFlightBatch, InFlightState, RecordState
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.share.state_records import StateBatch


class Window:
    """Batches in the order of their offsets, which do not overlap."""

    def __init__(self) -> None:
        self.start_offset = 0
        self.end_offset = 0
        self.delivery_complete_count = 0
        self.must_look = False
        """Whether something before the end offset may be available."""
        self._firsts: list[int] = []
        self._batches: dict[int, InFlightBatch] = {}
        self._gap: tuple[int, int] | None = None
        """Where the gaps begin, and the end offset up to which there are some."""

    # -- the batches

    def __iter__(self) -> Iterator[InFlightBatch]:
        return iter([self._batches[first] for first in self._firsts])

    def __len__(self) -> int:
        return len(self._firsts)

    def add(self, batch: InFlightBatch) -> None:
        """Add a batch, which replaces one with the same first offset."""
        if batch.first_offset not in self._batches:
            self._firsts.insert(bisect_left(self._firsts, batch.first_offset), batch.first_offset)
        self._batches[batch.first_offset] = batch

    @property
    def first(self) -> InFlightBatch | None:
        """The batch with the lowest offsets."""
        return self._batches[self._firsts[0]] if self._firsts else None

    @property
    def last(self) -> InFlightBatch | None:
        """The batch with the highest offsets."""
        return self._batches[self._firsts[-1]] if self._firsts else None

    def floor(self, offset: int) -> InFlightBatch | None:
        """Return the last batch that begins at or before an offset."""
        position = bisect_right(self._firsts, offset)
        return self._batches[self._firsts[position - 1]] if position else None

    def between(self, first: int, last: int) -> list[InFlightBatch]:
        """Return the batches that begin at `first` to `last`, both included."""
        found = self._firsts[bisect_left(self._firsts, first) : bisect_right(self._firsts, last)]
        return [self._batches[each] for each in found]

    @property
    def in_flight(self) -> int:
        """Number of offsets that are in flight; gaps count."""
        return self.end_offset - self.start_offset + 1 if self._firsts else 0

    def counted(self, first: int, last: int) -> int:
        """Return how many of some offsets are not below the start offset."""
        return max(0, last - max(first, self.start_offset) + 1)

    # -- loading

    def load(self, start_offset: int, batches: Iterable[StateBatch]) -> None:
        """Begin with a stored state. Raises BrokerError UNKNOWN_SERVER_ERROR for one that is damaged."""
        self.start_offset = start_offset
        gap_start = None
        next_offset = start_offset
        for each in batches:
            first, last, state = each.first_offset, each.last_offset, RecordState(each.delivery_state)
            if first < start_offset or last < first:
                message = f"the stored state has the offsets {first} to {last}, its start offset is {start_offset}"
                raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, message)
            if gap_start is None and first > next_offset:
                gap_start = next_offset
            next_offset = last + 1
            batch = InFlightBatch(first, last, InFlightState(state, each.delivery_count))
            self.add(batch)
            if state.is_final:
                self.delivery_complete_count += batch.size
        if not self._firsts:
            self.end_offset = start_offset
            return
        self.must_look = True
        self.end_offset = next_offset - 1
        if gap_start is not None:
            self._gap = (gap_start, self.end_offset)
        self.advance()

    # -- gaps

    @property
    def gap_start(self) -> int | None:
        """The first offset of a gap; None if there are none."""
        if self._gap is None or self._gap[1] != self.end_offset:
            return None
        gap = max(self._gap[0], self.start_offset)
        batch = self.floor(gap)
        while batch is not None and batch.last_offset >= gap:
            gap = batch.last_offset + 1
            batch = self.floor(gap)
        return gap if gap <= self.end_offset else None

    def acquired_to(self, next_offset: int) -> None:
        """Note that everything before `next_offset` was fetched: gaps before it are the log's own."""
        if self._gap is not None:
            end = self._gap[1]
            self._gap = (next_offset, end) if end == self.end_offset and next_offset <= end else None

    # -- offsets

    def next_fetch_offset(self) -> int:
        """Return the first offset that can be acquired."""
        last = self.last
        if last is None or self.start_offset > last.last_offset:
            self.must_look = False
            return self.end_offset
        if not self.must_look:
            return self.end_offset + 1
        gap = self.gap_start
        for batch in self:
            if gap is not None and batch.first_offset > gap:
                return gap
            for offset, _, state in batch.parts():
                if state.is_free:
                    return offset
        self.must_look = False
        return self.end_offset + 1

    def advance(self) -> bool:
        """Move the start offset over what needs no further delivery; return whether it moved."""
        gap = self.gap_start
        if gap is not None and gap <= self.start_offset:
            return False
        done_to, count = self._done_from_start()
        if done_to is None:
            return False
        last = self.last
        assert last is not None
        if done_to == last.last_offset:
            self.start_offset = self.end_offset = done_to + 1
            self._clear()
            return True
        batch = self.floor(done_to)
        assert batch is not None
        position = bisect_right(self._firsts, done_to)
        if done_to == batch.last_offset:
            following = self._firsts[position]
            self.start_offset = max(self.start_offset, following if gap is None else min(gap, following))
        else:
            self.start_offset = max(self.start_offset, done_to + 1)
            position -= 1  # a batch leaves once all of its offsets are done
        self.delivery_complete_count -= count
        for first in self._firsts[:position]:
            del self._batches[first]
        del self._firsts[:position]
        return True

    def move_start(self, log_start_offset: int) -> None:
        """Follow the start of the log: what is below it is not delivered any more."""
        if log_start_offset <= self.start_offset:
            return
        if not self._firsts:
            self.start_offset = self.end_offset = log_start_offset
            self.delivery_complete_count = 0
            return
        done = sum(
            min(last, log_start_offset - 1) - max(first, self.start_offset) + 1
            for batch in self
            if batch.first_offset < log_start_offset and batch.last_offset >= self.start_offset
            for first, last, state in batch.parts()
            if state.state.is_final and last >= self.start_offset and first < log_start_offset
        )
        self.archive(list(self), self.start_offset, log_start_offset, RecordState.AVAILABLE, counts=False)
        self.start_offset = log_start_offset
        self.delivery_complete_count -= done
        self.end_offset = max(self.end_offset, self.start_offset)
        # Kafka keeps acquired ones until their locks run out; what becomes of them has no effect there either.
        self._drop_below_start()
        self.advance()  # what held the start offset back may be gone

    def archive(
        self, batches: Sequence[InFlightBatch], first: int, end: int, state: RecordState, *, counts: bool
    ) -> None:
        """Archive what is in a state from `first` to below `end`. `counts`: it was not counted as complete yet."""
        for batch in batches:
            if batch.first_offset >= end:
                break
            if batch.whole is not None:
                if batch.whole.state is not state:
                    continue
                if batch.first_offset < first or batch.last_offset >= end:
                    if batch.whole.is_changing:
                        continue
                    batch.split()
            for part_first, part_last, found in list(batch.parts()):
                if part_first >= first and part_last < end and found.state is state:
                    found.archive()
                    self.must_look = True
                    if counts:
                        self.delivery_complete_count += part_last - part_first + 1

    def _done_from_start(self) -> tuple[int | None, int]:
        """Return the last offset up to which everything is done, and how many of these offsets were counted."""
        done_to, count = None, 0
        gap = self.gap_start
        for batch in self:
            if gap is not None and batch.last_offset >= gap:
                break
            for first, last, state in batch.parts_between(self.start_offset, batch.last_offset):
                if state.is_changing or not state.state.is_final:
                    return done_to, count
                done_to = last
                count += self.counted(first, last)
        return done_to, count

    def _drop_below_start(self) -> None:
        gone = [batch.first_offset for batch in self if batch.last_offset < self.start_offset]
        for first in gone:
            del self._batches[first]
        del self._firsts[: len(gone)]

    def _clear(self) -> None:
        self._firsts.clear()
        self._batches.clear()
        self.delivery_complete_count = 0
