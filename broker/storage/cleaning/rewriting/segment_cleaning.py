"""The second pass over one segment: the retained records are appended to the cleaned segment of its group.

Plain batches are filtered by the kernel, a buffer at a time, all others one by one by the batch filter; the results go
in offset order into one write buffer. Source: Kafka Cleaner.cleanInto.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.broker.storage.cleaning.rewriting.batch_filter import BatchFilter, FilteredBatch
from barnabas.broker.storage.cleaning.rewriting.cleaner_stats import CleanerStats
from barnabas.broker.storage.cleaning.rewriting.segment_reading import IoBuffers, read_through, whole_legacy_message
from barnabas.broker.storage.files.failpoints import failpoint
from barnabas.broker.storage.segment.log_segment import MAX_RELATIVE_OFFSET, AppendedBatch, LogSegment
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.errors import CorruptRecordError
from barnabas.protocol.records.kernels.cleaned import FilterRules, Stop
from barnabas.protocol.records.kernels.cleaning import OffsetTable
from barnabas.protocol.records.layout import MAGIC_POSITION, MAGIC_V2


class SegmentCleaner:
    """Cleans the segments of one group into `destination`."""

    def __init__(
        self,
        destination: LogSegment,
        table: OffsetTable,
        buffers: IoBuffers,
        stats: CleanerStats,
        note_bytes: Callable[[int], object],
    ) -> None:
        self._destination = destination
        self._table = table
        self._buffers = buffers
        self._stats = stats
        self._note_bytes = note_bytes
        self._filled = 0
        self._pending: list[AppendedBatch] = []

    def clean(
        self, source: LogSegment, rules: FilterRules, batch_filter: BatchFilter, before_read: Callable[[], object]
    ) -> None:
        """Append the retained records of `source`. Raises DecodeError, OSError."""

        def take(piece: memoryview) -> int:
            return self._take(piece, rules, batch_filter)

        read_through(source, 0, self._buffers, take, before_read)
        self._buffers.restore()

    def _take(self, piece: memoryview, rules: FilterRules, batch_filter: BatchFilter) -> int:
        self._note_bytes(len(piece))
        at = 0
        while True:
            with memoryview(self._buffers.write) as view, view[self._filled :] as room:
                found = self._table.filter_batches(piece[at:], len(piece) - at, room, rules)
            self._pending += [
                AppendedBatch(self._filled + position, size, last_offset, max_timestamp)
                for position, size, last_offset, max_timestamp in found.batches
            ]
            self._filled += found.output_bytes
            at += found.position
            self._stats.messages_read += found.records_read
            self._stats.messages_written += found.records_written
            self._stats.invalid_messages_read += found.records_invalid
            if found.stop is Stop.NO_ROOM:
                self._make_room(found.room_needed)
            elif found.stop is Stop.ASIDE and (size := self._take_aside(piece, at, batch_filter)):
                at += size
            else:
                break
        self._write()
        self._stats.bytes_read += at
        return at

    def _take_aside(self, piece: memoryview, at: int, batch_filter: BatchFilter) -> int:
        """Filter the batch at `at`, which is not plain; return its size, or 0 if the piece has only a part of it."""
        if piece[at + MAGIC_POSITION] != MAGIC_V2:
            message = whole_legacy_message(piece, at)
            if message is None:
                return 0
            size = message.size_bytes
            found = batch_filter.filter_legacy(message)
        else:
            batch = RecordBatch(piece, at)
            batch.ensure_valid()
            size = batch.size_bytes
            found = batch_filter.filter(batch)
        self._add(found)
        return size

    def _add(self, found: FilteredBatch) -> None:
        self._stats.messages_read += found.records_read
        self._stats.messages_written += found.records_written
        self._stats.invalid_messages_read += found.records_invalid
        size = len(found.data)
        if size:
            self._make_room(size)
            self._buffers.write[self._filled : self._filled + size] = found.data
            self._pending.append(AppendedBatch(self._filled, size, found.last_offset, found.max_timestamp))
            self._filled += size

    def _make_room(self, size: int) -> None:
        if len(self._buffers.write) - self._filled < size:
            self._write()
            if len(self._buffers.write) < size:
                self._buffers.write = bytearray(size)

    def _write(self) -> None:
        """Append the write buffer to the cleaned segment."""
        if not self._filled:
            return
        last_offset = self._pending[-1].last_offset
        if last_offset - self._destination.base_offset > MAX_RELATIVE_OFFSET:
            raise CorruptRecordError(f"offset {last_offset} is too far from {self._destination.base_offset}")
        failpoint("cleaner.write")
        with memoryview(self._buffers.write) as view, view[: self._filled] as data:
            self._destination.append_many(data, self._pending)
        self._stats.bytes_written += self._filled
        self._note_bytes(self._filled)
        self._filled = 0
        self._pending = []
