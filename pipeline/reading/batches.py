"""Decodes stored record batches into Arrow batches, for the broker and for segment files.

The kernel decodes plain batches. This module handles what the kernel hands back: compressed batches, transactions under
read_committed, message sets of versions 0 and 1, and damage.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from barnabas.pipeline.errors import CorruptLogError
from barnabas.pipeline.reading.arrow import ArrowBatches
from barnabas.pipeline.reading.offsets import OffsetRange
from barnabas.pipeline.reading.schema import Projection
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages.data.fetch import AbortedTransaction
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.errors import CorruptRecordError
from barnabas.protocol.records.kernels.columns import ColumnBuilder, Stop
from barnabas.protocol.records.layout import HEADER_SIZE, LOG_OVERHEAD, MAGIC_POSITION, MAGIC_V2, TIMESTAMP_TYPE_MASK
from barnabas.protocol.records.legacy.messages import MAX_HEAD_SIZE, LegacyMessage, read_legacy_records
from barnabas.protocol.records.reader import MAX_DECOMPRESSED_BYTES, borrow_payload, read_records

logger = logging.getLogger(__name__)

FIRST_ROWS = 512
"""Of the first batch: Spark pushes no LIMIT down to a Python source, and `show()` must not wait for a large one."""
MAX_ROWS = 16384
MAX_BYTES = 4 << 20
_GROWTH = 4

_ABORT = 0
"""The type of the control record that ends an aborted transaction."""


@dataclass(frozen=True, slots=True)
class ReadRules:
    """How records are read, from a broker or from files. Pickled to the executors.

    Batches whose largest timestamp is below `min_timestamp` (ms) may be skipped.
    """

    projection: Projection
    is_strict: bool
    check_crcs: bool
    read_committed: bool
    min_timestamp: int | None = None


class BatchReader:
    """Decodes the rows of one part of one partition. Feed it bytes with `read`; `finish` returns the remaining rows.

    `at_end`: the end offset is reached. `is_lost`: the start of the batch after a damaged one is unknown.
    """

    def __init__(self, rules: ReadRules, part: OffsetRange) -> None:
        self.at_end = False
        self.is_lost = False
        self._rules = rules
        self._end = part.end
        self._builder = ColumnBuilder(rules.projection.wanted, part.start, part.end)
        self._arrow = ArrowBatches(rules.projection, part.topic_partition)
        self._max_rows = FIRST_ROWS
        self._aborted: deque[AbortedTransaction] = deque()
        self._aborted_producers: set[int] = set()

    @property
    def next_offset(self) -> int:
        """The offset at which the next batch is expected."""
        return self._builder.next_offset

    def skip_to(self, offset: int) -> None:
        """Skip all offsets below this one: they were read already, or are gone."""
        self._builder.next_offset = self._builder.start_offset = max(self._builder.next_offset, offset)

    def aborted(self, transactions: Iterable[AbortedTransaction]) -> None:
        """Set the aborted transactions that overlap the records read next."""
        self._aborted = deque(sorted(transactions, key=lambda transaction: transaction.first_offset))

    def read(self, data: memoryview, place: str, base: int = 0) -> Generator[pa.RecordBatch, None, int]:
        """Yield the rows of all whole batches of `data`; return the position of the first unread byte.

        `data` begins at position `base` of `place`; errors name both. Raises CorruptLogError in mode strict.
        """
        builder, rules = self._builder, self._rules
        self.is_lost = False
        position = 0
        while True:
            if builder.next_offset >= self._end:
                self.at_end = True
                return position
            stop = builder.fill(
                data,
                position,
                max_rows=self._max_rows,
                max_bytes=MAX_BYTES,
                check_crcs=rules.check_crcs,
                # A batch skipped by its timestamp might be the marker that ends an aborted transaction.
                min_timestamp=None if rules.read_committed else rules.min_timestamp,
                stop_at_transactions=rules.read_committed,
            )
            position = builder.position
            if stop is Stop.FULL:
                yield self._take()
                continue
            if stop is Stop.CUT or self.at_end:
                return position
            if stop is Stop.END:
                self.at_end = True
                return position
            try:
                if stop is Stop.CORRUPT:
                    raise CorruptRecordError(builder.fault)
                if stop is Stop.OLD_FORMAT:
                    if builder.rows >= self._max_rows:
                        yield self._take()
                    if not self._read_message(data, position):
                        return position
                else:
                    self._read_batch(RecordBatch(data, position))
            except DecodeError as error:
                yield from self.damaged(f"{place}, position {base + position}: {error}")
                if not self._skip_damaged(data, position):
                    self.is_lost = True
                    return position
            position = builder.position

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows that `read` has kept back."""
        if self._builder.rows:
            yield self._take()

    def damaged(self, sentence: str) -> Iterator[pa.RecordBatch]:
        """Report unreadable bytes: raise CorruptLogError in mode strict, else warn.

        Also yield a row when the schema has `_corrupt_record`.
        """
        if self._rules.is_strict:
            raise CorruptLogError(f"{sentence} (option mode=permissive reads the intact batches)")
        logger.warning("left out: %s", sentence)
        if self._rules.projection.reports_corruption:
            yield from self.finish()
            yield self._arrow.corruption(self.next_offset, sentence)

    def _take(self) -> pa.RecordBatch:
        self._max_rows = min(MAX_ROWS, self._max_rows * _GROWTH)
        return self._arrow.batch(self._builder.take())

    def _read_batch(self, batch: RecordBatch) -> None:
        """Read a batch that the kernel handed back whole. Raises DecodeError."""
        if not (self._rules.read_committed and batch.is_transactional and not self._is_committed(batch)):
            self._builder.append_payload(
                borrow_payload(batch, MAX_DECOMPRESSED_BYTES),
                batch.record_count,
                batch.base_offset,
                batch.last_offset_delta,
                batch.base_timestamp,
                batch.max_timestamp if batch.attributes & TIMESTAMP_TYPE_MASK else None,
            )
        self._builder.skip(batch.size_bytes, batch.last_offset)

    def _is_committed(self, batch: RecordBatch) -> bool:
        """Return whether a transactional batch holds committed records; track markers. Raises DecodeError."""
        while self._aborted and self._aborted[0].first_offset <= batch.last_offset:
            self._aborted_producers.add(self._aborted.popleft().producer_id)
        if not batch.is_control:
            return batch.producer_id not in self._aborted_producers
        for record in read_records(batch):
            if record.key is not None and len(record.key) >= 4 and int.from_bytes(record.key[2:4], "big") == _ABORT:
                self._aborted_producers.discard(batch.producer_id)
        return False

    def _read_message(self, data: memoryview, position: int) -> bool:
        """Read one entry of an old message set; False when the data cuts it short, or it begins after the end."""
        if len(data) - position < MAX_HEAD_SIZE:
            return False
        message = LegacyMessage(data, position)
        if message.size_bytes > len(data) - position:
            return False
        if message.offset >= self._builder.next_offset:
            message.ensure_valid()
            records = read_legacy_records(message)
            if records[0].offset >= self._end:
                self.at_end = True
                return False
            for record in records:
                self._builder.append_record(
                    record.offset, record.timestamp, int(message.timestamp_type), record.key, record.value
                )
        self._builder.skip(message.size_bytes, message.offset)
        return True

    def _skip_damaged(self, data: memoryview, position: int) -> bool:
        """Skip the batch at `position` if its size is plausible."""
        size = int.from_bytes(data[position + 8 : position + 12], "big", signed=True) + LOG_OVERHEAD
        is_batch = data[position + MAGIC_POSITION] == MAGIC_V2
        if not (HEADER_SIZE if is_batch else MAX_HEAD_SIZE) <= size <= len(data) - position:
            return False
        last_offset = RecordBatch(data, position).last_offset if is_batch else LegacyMessage(data, position).offset
        if not self.next_offset <= last_offset < self._end + (1 << 31):
            last_offset = self.next_offset - 1  # implausible
        self._builder.skip(size, last_offset)
        return True
