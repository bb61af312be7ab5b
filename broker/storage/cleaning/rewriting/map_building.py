"""The first pass: fills the offset map with the keys of the dirty part.

Control batches and data of aborted transactions are left out. If the map becomes full, the pass ends, even in the
middle of a batch; `latest_offset` is then the last offset in the map. Source: Kafka Cleaner.buildOffsetMap.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.broker.storage.cleaning.rewriting.cleaned_transactions import CleanedTransactions
from barnabas.broker.storage.cleaning.rewriting.cleaner_stats import CleanerStats
from barnabas.broker.storage.cleaning.rewriting.offset_map import OffsetMap
from barnabas.broker.storage.cleaning.rewriting.segment_reading import IoBuffers, read_through, whole_legacy_message
from barnabas.broker.storage.log.aborted_transactions import aborted_transactions
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.segment.log_segments import SegmentsView
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.kernels.cleaned import Stop
from barnabas.protocol.records.layout import MAGIC_POSITION, MAGIC_V2
from barnabas.protocol.records.legacy.messages import read_legacy_records
from barnabas.protocol.records.reader import MAX_DECOMPRESSED_BYTES, borrow_payload

_ENDS = -1


class MapBuilder:
    """Fills one map from the segments of one log's dirty part [start, end)."""

    def __init__(
        self,
        offset_map: OffsetMap,
        buffers: IoBuffers,
        stats: CleanerStats,
        note_bytes: Callable[[int], object],
        *,
        start_offset: int,
    ) -> None:
        self.is_full = False
        self._map = offset_map
        self._table = offset_map.table
        self._buffers = buffers
        self._stats = stats
        self._note_bytes = note_bytes
        self._start_offset = start_offset
        self._transactions = CleanedTransactions()

    def prepare(self, view: SegmentsView, end_offset: int) -> None:
        """Collect the aborted transactions of the dirty part. Raises OSError, CorruptFileError."""
        self._transactions.add_aborted(aborted_transactions(view, self._start_offset, end_offset))

    def add_segment(self, segment: LogSegment, next_base_offset: int, before_read: Callable[[], object]) -> None:
        """Add the segment's keys from the start offset on. Raises DecodeError, OSError."""
        position = segment.index_position(self._start_offset)
        read_through(segment, position, self._buffers, self._take, before_read)
        if not self.is_full:
            # Also covers offsets missing at the segment's end: they have no records.
            self._map.latest_offset = next_base_offset - 1
            self._buffers.restore()

    def _take(self, piece: memoryview) -> int:
        self._note_bytes(len(piece))
        at = 0
        while True:
            added = self._table.add_batches(piece[at:], len(piece) - at, self._start_offset, self._map.max_entries)
            self._stats.map_messages_read += added.records_read
            self._note_latest(added.latest_offset)
            at += added.position
            if added.stop is Stop.FULL:
                self.is_full = True
            elif added.stop is Stop.ASIDE and (size := self._add_aside(piece, at)):
                at += size
                continue
            self._stats.map_bytes_read += at
            return _ENDS if self.is_full else at

    def _add_aside(self, piece: memoryview, at: int) -> int:
        """Add the batch at `at`, which is not plain; return its size, or 0 if it is cut short or the map is full."""
        if piece[at + MAGIC_POSITION] != MAGIC_V2:
            return self._add_legacy(piece, at)
        batch = RecordBatch(piece, at)
        batch.ensure_valid()
        if batch.is_control:
            self._transactions.on_control_batch(batch)
            self._stats.map_messages_read += 1
        elif self._transactions.on_data_batch(batch):
            self._stats.map_messages_read += batch.record_count
        else:
            added = self._table.add_records(
                borrow_payload(batch, MAX_DECOMPRESSED_BYTES),
                batch.record_count,
                batch.base_offset,
                batch.last_offset_delta,
                batch.base_timestamp,
                self._start_offset,
                self._map.max_entries,
            )
            self._stats.map_messages_read += added.records_read
            self._note_latest(added.last_offset)
            if added.is_full:
                self.is_full = True
                return 0
        if batch.last_offset >= self._start_offset:
            self._note_latest(batch.last_offset)
        return batch.size_bytes

    def _add_legacy(self, piece: memoryview, at: int) -> int:
        message = whole_legacy_message(piece, at)
        if message is None:
            return 0
        for record in read_legacy_records(message):
            if record.key is not None and record.offset >= self._start_offset:
                if self._table.entries >= self._map.max_entries:
                    self.is_full = True
                    return 0
                self._table.put(record.key, record.offset)
                self._note_latest(record.offset)
            self._stats.map_messages_read += 1
        if message.offset >= self._start_offset:
            self._note_latest(message.offset)
        return message.size_bytes

    def _note_latest(self, offset: int) -> None:
        if offset >= 0:
            self._map.latest_offset = offset
