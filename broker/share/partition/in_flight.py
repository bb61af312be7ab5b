"""Records in flight: a state for each batch, or for each of its offsets once they differ.

    available -> acquired -> available (released, or its lock ran out, with deliveries left)
                          -> acknowledged
                          -> archived (rejected, a gap, aborted, or out of deliveries)

A change that is being written has begun, and is undone if the write fails. Source: Kafka's InFlightState,
InFlightBatch, RecordState.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum


class RecordState(IntEnum):
    """The numbers are those of `__share_group_state`; acquired is not stored, and 3 is reserved for archiving."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4

    @property
    def is_final(self) -> bool:
        """Whether the record needs no further delivery."""
        return self in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


NO_MEMBER = ""


class InFlightState:
    """State of one record, or of all records of a batch. `deadline_ms`: when an acquired one's lock runs out."""

    __slots__ = ("_before", "_is_archived", "deadline_ms", "delivery_count", "member_id", "state")

    def __init__(
        self, state: RecordState, delivery_count: int, member_id: str = NO_MEMBER, deadline_ms: float | None = None
    ) -> None:
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = member_id
        self.deadline_ms = deadline_ms
        self._before: tuple[RecordState, str, int] | None = None
        self._is_archived = False

    def copy(self) -> InFlightState:
        """Return the same state of another record; no change of it is under way."""
        return InFlightState(self.state, self.delivery_count, self.member_id, self.deadline_ms)

    @property
    def is_changing(self) -> bool:
        """Whether a change of it is being written."""
        return self._before is not None

    @property
    def is_free(self) -> bool:
        """Whether it can be acquired."""
        return self.state is RecordState.AVAILABLE and self._before is None

    def acquire(self, member_id: str, deadline_ms: float) -> None:
        """Deliver it once more, to a member. It must be free."""
        assert self.is_free
        self.state = RecordState.ACQUIRED
        self.delivery_count += 1
        self.member_id = member_id
        self.deadline_ms = deadline_ms

    def end(self, state: RecordState, count_limit: int) -> bool:
        """End an acquisition; without deliveries left it is archived, not available. False while a change is written.

        The lock's deadline stays until the change is complete.
        """
        if self._before is not None or self.state is not RecordState.ACQUIRED:
            return False
        if state is RecordState.AVAILABLE and self.delivery_count >= count_limit:
            state = RecordState.ARCHIVED
        self.state = state
        self.member_id = NO_MEMBER
        return True

    def begin_end(self, state: RecordState, count_limit: int) -> bool:
        """End an acquisition by a change that has to be written first."""
        before = (self.state, self.member_id, count_limit)
        ended = self.end(state, count_limit)
        if ended:
            self._before = before
        return ended

    def complete(self, *, is_written: bool, now_ms: float) -> None:
        """Keep or undo a change. One that is undone after the lock's end leaves the record released."""
        before, self._before = self._before, None
        if is_written or self._is_archived or before is None:
            self.deadline_ms = None
        elif self.deadline_ms is not None and self.deadline_ms <= now_ms:
            self.state = RecordState.ARCHIVED if self.delivery_count >= before[2] else RecordState.AVAILABLE
            self.deadline_ms = None
        else:
            self.state, self.member_id = before[:2]

    def archive(self) -> None:
        """Archive it whatever it was, for good."""
        self._is_archived = True
        self.state = RecordState.ARCHIVED
        self.member_id = NO_MEMBER
        self.deadline_ms = None


class InFlightBatch:
    """Offsets that were acquired together. `whole` is their state, None once `offsets` has one for each."""

    __slots__ = ("first_offset", "last_offset", "offsets", "whole")

    def __init__(self, first_offset: int, last_offset: int, whole: InFlightState) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.whole: InFlightState | None = whole
        self.offsets: dict[int, InFlightState] = {}

    @property
    def size(self) -> int:
        """Number of offsets."""
        return self.last_offset - self.first_offset + 1

    def split(self) -> None:
        """Give each offset a state of its own. A change of the batch must not be under way."""
        whole = self.whole
        if whole is not None:
            assert not whole.is_changing
            self.offsets = {offset: whole.copy() for offset in range(self.first_offset, self.last_offset + 1)}
            self.whole = None

    def split_after(self, offset: int) -> None:
        """Split a batch that was just acquired; what is after `offset` was not delivered."""
        self.split()
        for number, state in self.offsets.items():
            if number > offset:
                self.offsets[number] = InFlightState(RecordState.AVAILABLE, state.delivery_count - 1)

    def parts(self) -> Iterator[tuple[int, int, InFlightState]]:
        """Yield first offset, last offset and state of each part."""
        if self.whole is not None:
            yield self.first_offset, self.last_offset, self.whole
        else:
            for offset, state in self.offsets.items():
                yield offset, offset, state

    def parts_between(self, first: int, last: int) -> Iterator[tuple[int, int, InFlightState]]:
        """Yield the parts with offsets from `first` to `last`, both included, without a look at the others."""
        if self.whole is not None:
            if self.first_offset <= last and self.last_offset >= first:
                yield self.first_offset, self.last_offset, self.whole
        else:
            for offset in range(max(first, self.first_offset), min(last, self.last_offset) + 1):
                yield offset, offset, self.offsets[offset]
