"""Check of one segment: its batches, their sequence, and both indexes against the batches.

- Batch: CRC, encoding of all records; count, offset deltas and timestamps against the header; offsets after the
  previous batch's and within the range of an index; leader epoch not below the previous one.
- Offset index entry: strictly increasing; refers to the start of a batch and that batch's last offset.
- Time index entry: strictly increasing; refers to a batch with that timestamp, larger than all timestamps before. The
  last entry of a sealed segment is the segment's maximum.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from barnabas.broker.storage.files.file_names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    file_name,
)
from barnabas.broker.storage.index.offset_index import OffsetPosition
from barnabas.broker.storage.index.time_index import NO_TIMESTAMP, TimestampOffset
from barnabas.broker.storage.inspection.findings import Circumstances, Finding
from barnabas.broker.storage.inspection.index_entries import IndexContent, read_offset_index, read_time_index
from barnabas.broker.storage.inspection.log_walk import LogWalk, StoredBatch, StoredMessage, is_zeros
from barnabas.broker.storage.inspection.verify_transactions import TransactionsCheck
from barnabas.broker.storage.segment.log_segment import MAX_RELATIVE_OFFSET
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.layout import TimestampType
from barnabas.protocol.records.legacy.messages import read_legacy_records
from barnabas.protocol.records.reader import check_records

Advance = Callable[[int], None]


@dataclass(slots=True)
class SegmentCheck:
    """Check of one segment; after `run`, `next_offset` and `leader_epoch` are those after the last whole batch."""

    directory: Path
    base_offset: int
    is_newest: bool
    circumstances: Circumstances
    advance: Advance
    """Called with the number of bytes read, for a progress bar."""
    transactions: TransactionsCheck
    """Check of the log's transactions, which continues from segment to segment."""
    next_offset: int = 0
    leader_epoch: int = -1
    max_timestamp: int = NO_TIMESTAMP
    _size_bytes: int = 0
    _offset_index: IndexContent[OffsetPosition] | None = None
    _time_index: IndexContent[TimestampOffset] | None = None
    _unmet_positions: dict[int, int] = field(default_factory=dict)
    """Position -> offset of offset index entries without a matching batch so far."""
    _unmet_times: list[TimestampOffset] = field(default_factory=list)
    """Time index entries without a matching batch so far, the last one first."""

    def run(self) -> Iterator[Finding]:
        """Yield all findings. Raises OSError."""
        self.next_offset = self.base_offset
        # Indexes first: if a broker adds entries meanwhile, their batches are still read afterwards.
        yield from self._load_indexes()
        yield from self.transactions.begin(self._path(TRANSACTION_INDEX_SUFFIX), may_lag=self._excuses_unused_room)
        yield from self._check_batches()
        yield from self._check_indexes()
        yield from self.transactions.end(self.next_offset)

    @property
    def log_path(self) -> Path:
        """The segment's `.log`."""
        return self._path(LOG_SUFFIX)

    @property
    def _excuses_unused_room(self) -> bool:
        return self.is_newest and not self.circumstances.is_clean

    def _path(self, suffix: str) -> Path:
        return self.directory / file_name(self.base_offset, suffix)

    # -- batches

    def _check_batches(self) -> Iterator[Finding]:
        walk = LogWalk(self.log_path)
        for step in walk:
            if isinstance(step, StoredMessage):
                yield from self._check_message(step)
            else:
                yield from self._check_batch(step)
        self.advance(walk.left_bytes)
        self._size_bytes = walk.size_bytes
        if walk.end_fault is None:
            return
        if self.is_newest and self.circumstances.is_in_use:
            return
        if self._excuses_unused_room and is_zeros(self.log_path, walk.position):
            return
        yield Finding(
            self.log_path, walk.position, f"{walk.left_bytes} bytes after the last whole batch: {walk.end_fault}"
        )

    def _check_batch(self, step: StoredBatch) -> Iterator[Finding]:
        batch = step.batch
        if step.fault is not None:
            yield self._finding(step.position, f"batch of offset {batch.base_offset}: {step.fault}")
        else:
            fault = records_fault(batch)
            if fault is not None:
                yield self._finding(step.position, f"batch of offset {batch.base_offset}: {fault}")
            yield from self.transactions.note(batch)
        yield from self._check_offsets(step.position, batch.base_offset, batch.last_offset)
        if 0 <= batch.partition_leader_epoch < self.leader_epoch:
            yield self._finding(
                step.position,
                f"leader epoch {batch.partition_leader_epoch} comes after epoch {self.leader_epoch}",
            )
        self.leader_epoch = max(self.leader_epoch, batch.partition_leader_epoch)
        self._note(step.position, batch.base_offset, batch.last_offset, batch.max_timestamp, batch.size_bytes)

    def _check_message(self, step: StoredMessage) -> Iterator[Finding]:
        message = step.message
        fault = message_fault(step)
        if fault is not None:
            yield self._finding(step.position, f"message of offset {message.offset}: {fault}")
        first = step.first_offset
        yield from self._check_offsets(step.position, first, message.offset)
        self._note(step.position, first, message.offset, message.timestamp, message.size_bytes)

    def _check_offsets(self, position: int, first: int, last: int) -> Iterator[Finding]:
        if first < self.next_offset:
            yield self._finding(position, f"base offset {first}, expected {self.next_offset} or higher")
        if last < first or last - self.base_offset > MAX_RELATIVE_OFFSET:
            yield self._finding(position, f"last offset {last} does not fit base offset {first} in this segment")

    def _note(self, position: int, first: int, last: int, max_timestamp: int, size: int) -> None:
        if self._unmet_positions.get(position) == last:
            del self._unmet_positions[position]
        if self._unmet_times and first <= self._unmet_times[-1].offset <= last:
            entry = self._unmet_times[-1]
            if entry.timestamp == max_timestamp > self.max_timestamp:
                self._unmet_times.pop()
        self.max_timestamp = max(self.max_timestamp, max_timestamp)
        self.next_offset = max(self.next_offset, last + 1)
        self.advance(size)

    def _finding(self, position: int, message: str) -> Finding:
        return Finding(self.log_path, position, message)

    # -- indexes

    def _load_indexes(self) -> Iterator[Finding]:
        path = self._path(OFFSET_INDEX_SUFFIX)
        with contextlib.suppress(FileNotFoundError):
            self._offset_index = read_offset_index(path, self.base_offset)
            self._unmet_positions = {entry.position: entry.offset for entry in self._offset_index.entries}
            yield from self._check_room(path, self._offset_index)
        path = self._path(TIME_INDEX_SUFFIX)
        with contextlib.suppress(FileNotFoundError):
            self._time_index = read_time_index(path, self.base_offset)
            self._unmet_times = self._time_index.entries[::-1]
            yield from self._check_room(path, self._time_index)

    def _check_room(self, path: Path, content: IndexContent[Any]) -> Iterator[Finding]:
        if content.odd_bytes:
            yield Finding(path, None, f"{content.odd_bytes} bytes at the end are not a whole entry")
        if content.unused_bytes and not self._excuses_unused_room:
            yield Finding(path, content.used_bytes, f"{content.unused_bytes} bytes of zeros follow the last entry")

    def _check_indexes(self) -> Iterator[Finding]:
        has_batches = self.next_offset > self.base_offset
        yield from self._check_offset_index(has_batches)
        yield from self._check_time_index(has_batches)

    def _check_offset_index(self, has_batches: bool) -> Iterator[Finding]:
        path = self._path(OFFSET_INDEX_SUFFIX)
        if self._offset_index is None:
            if has_batches:
                yield Finding(path, None, "the offset index is missing")
            return
        before = OffsetPosition(self.base_offset - 1, -1)
        for slot, entry in enumerate(self._offset_index.entries):
            place = slot * 8
            if entry.offset <= before.offset or entry.position <= before.position:
                yield Finding(path, place, f"entry {tuple(entry)} is not above {tuple(before)}")
            elif not 0 <= entry.position < self._size_bytes:
                yield Finding(path, place, f"entry {tuple(entry)} is outside of a log of {self._size_bytes} bytes")
            elif entry.position in self._unmet_positions:
                yield Finding(path, place, f"entry {tuple(entry)} matches no batch with that last offset and position")
            before = entry

    def _check_time_index(self, has_batches: bool) -> Iterator[Finding]:
        path = self._path(TIME_INDEX_SUFFIX)
        if self._time_index is None:
            if has_batches:
                yield Finding(path, None, "the time index is missing")
            return
        entries = self._time_index.entries
        unmet_from = len(entries) - len(self._unmet_times)
        before = TimestampOffset(NO_TIMESTAMP, self.base_offset - 1)
        for slot, entry in enumerate(entries):
            if entry.timestamp <= before.timestamp or entry.offset <= before.offset:
                yield Finding(path, slot * 12, f"entry {tuple(entry)} is not above {tuple(before)}")
                return
            if slot == unmet_from:
                # The entries after it were not compared with any batch, so only this one can be reported.
                yield Finding(
                    path, slot * 12, f"entry {tuple(entry)} matches no batch with that offset and a new maximum"
                )
                return
            before = entry
        is_sealed = not self.is_newest or self.circumstances.is_clean
        if is_sealed and before.timestamp < self.max_timestamp:
            yield Finding(path, None, f"ends with {before.timestamp}, the segment's maximum is {self.max_timestamp}")


def records_fault(batch: RecordBatch) -> str | None:
    """Return how a batch's records contradict its header, or None."""
    if batch.record_count < 0 or batch.last_offset_delta < 0:
        return f"{batch.record_count} records, last offset delta {batch.last_offset_delta}"
    if batch.record_count == 0:
        return None  # the cleaner leaves a header where it removed all records
    try:
        summary = check_records(batch, contiguous=False, as_kafka=True)
    except DecodeError as error:
        return str(error)
    if batch.timestamp_type is TimestampType.CREATE_TIME and summary.max_timestamp != batch.max_timestamp:
        return f"maximum timestamp {batch.max_timestamp}, the records' is {summary.max_timestamp}"
    return None


def message_fault(step: StoredMessage) -> str | None:
    """Return why a message of an old format is damaged or contradicts its header, or None."""
    if step.fault is not None:
        return step.fault
    try:
        records = read_legacy_records(step.message)
    except DecodeError as error:
        return str(error).partition(": ")[2]
    largest = max(record.timestamp for record in records)
    if largest != step.message.timestamp:
        return f"timestamp {step.message.timestamp}, the largest in it is {largest}"
    return None
