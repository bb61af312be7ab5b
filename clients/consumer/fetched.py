"""Fetched bytes until they are read: a response's frame, its slice per partition, and the records of their batches.

A slice is decoded batch by batch as it is read, so prefetched batches stay compressed. The memory of a frame counts as
used until the last of its slices has been read.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.clients.config import ConsumerConfig
from barnabas.clients.errors import CorruptBatchError
from barnabas.clients.records import ConsumerRecord
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages.data.fetch import AbortedTransaction
from barnabas.protocol.records.batch import RecordBatch, iter_batches
from barnabas.protocol.records.reader import read_fetched, read_records
from barnabas.protocol.topic_partition import TopicPartition

ABORT_MARKER = 0
"""The type of a control record that ends an aborted transaction (1: a committed one)."""

_CONTROL_KEY = struct.Struct(">hh")  # version, type


@dataclass(slots=True)
class FetchedFrame:
    """Memory of one fetch response: `size_bytes` are held until `slices`, the unread slices, drop to 0."""

    size_bytes: int
    slices: int


@dataclass(slots=True)
class DecodedBatch:
    """A batch's records from the wanted offset on. A control or aborted batch has none."""

    records: list[ConsumerRecord]
    next_offset: int


class FetchedSlice:
    """One partition's batches in one response. `remaining_bytes` are not decoded yet."""

    __slots__ = (
        "_aborted",
        "_aborted_producers",
        "_batches",
        "_config",
        "_topic_partition",
        "frame",
        "remaining_bytes",
        "size_bytes",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        data: memoryview,
        frame: FetchedFrame,
        aborted: Sequence[AbortedTransaction],
        config: ConsumerConfig,
    ) -> None:
        self.frame = frame
        self.size_bytes = self.remaining_bytes = len(data)
        self._topic_partition = topic_partition
        self._batches = iter_batches(data)
        self._config = config
        self._aborted = deque(sorted(aborted, key=lambda transaction: transaction.first_offset))
        self._aborted_producers: set[int] = set()

    def read_batch(self, position: int) -> DecodedBatch | None:
        """Decode the next batch that reaches to `position` or beyond; None at the end of the slice.

        Raises CorruptBatchError, after which the slice must not be read further.
        """
        batch: RecordBatch | None = None
        try:
            while (batch := next(self._batches, None)) is not None:
                self.remaining_bytes = self.size_bytes - self._batches.position
                if batch.next_offset > position:
                    return self._decode(batch, position)
        except DecodeError as error:
            next_offset = -1 if batch is None else batch.next_offset
            raise CorruptBatchError(self._topic_partition, position, next_offset, str(error)) from error
        self.remaining_bytes = 0
        return None

    def _decode(self, batch: RecordBatch, position: int) -> DecodedBatch:
        if self._config.check_crcs:
            batch.ensure_valid()
        self._begin_aborted(batch.last_offset)
        if batch.is_control:
            self._end_transaction(batch)
            return DecodedBatch([], batch.next_offset)
        if self._is_aborted(batch):
            return DecodedBatch([], batch.next_offset)
        topic, partition = self._topic_partition
        records = read_fetched(
            batch, ConsumerRecord, topic, partition, max_decompressed_bytes=self._config.max_batch_bytes
        )
        if batch.base_offset < position:
            records = [record for record in records if record.offset >= position]
        return DecodedBatch(records, batch.next_offset)

    def _begin_aborted(self, offset: int) -> None:
        """Note aborted transactions that start up to `offset`, before markers are looked at too.

        A transaction that started before this slice may have only its marker in it, and the marker must end something.
        """
        while self._aborted and self._aborted[0].first_offset <= offset:
            self._aborted_producers.add(self._aborted.popleft().producer_id)

    def _is_aborted(self, batch: RecordBatch) -> bool:
        return batch.is_transactional and batch.producer_id in self._aborted_producers

    def _end_transaction(self, batch: RecordBatch) -> None:
        """End the producer's aborted transaction at its marker: records that the producer writes later are valid."""
        if not self._aborted_producers or batch.producer_id not in self._aborted_producers:
            return
        for record in read_records(batch):
            if record.key is not None and len(record.key) >= _CONTROL_KEY.size:
                if _CONTROL_KEY.unpack_from(record.key)[1] == ABORT_MARKER:
                    self._aborted_producers.discard(batch.producer_id)


def end_of_whole_batches(data: memoryview, offset: int) -> tuple[int, int]:
    """Return the offset after the last whole batch (`offset` without one), and the number of bytes of whole batches.

    Reads headers only. Raises DecodeError for bytes that are not batches.
    """
    batches = iter_batches(data)
    for batch in batches:
        offset = batch.next_offset
    return offset, batches.position


def size_of_partial_batch(data: memoryview) -> int:
    """Total size of the truncated batch at the start of `data`; 0 if `data` ends before the batch's size."""
    if len(data) < 12:
        return 0
    return int.from_bytes(data[8:12], "big") + 12
