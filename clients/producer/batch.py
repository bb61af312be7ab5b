"""The producer's buffers: a batch of records with their futures, and one partition's queue of batches.

Only the first batch of a queue may be in flight. That keeps a partition's records in order over losses and retries:
nothing can overtake a batch that failed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from itertools import groupby

from barnabas.clients.producer.compression_ratio import CompressionRatio
from barnabas.clients.producer.sequences import LineSequences, restamp
from barnabas.clients.records import RecordMetadata
from barnabas.protocol.messages.data.produce import ProducePartitionResult
from barnabas.protocol.records.builder import Buffer, RecordBatchBuilder
from barnabas.protocol.records.layout import NO_SEQUENCE
from barnabas.protocol.topic_partition import TopicPartition

NO_OFFSET = -1
_new_metadata = tuple.__new__


class ProducerBatch:
    """Records for one partition, buffered or in flight. `deadline` is the loop's time, in seconds."""

    __slots__ = (
        "_halves",
        "_waiter",
        "attempts",
        "base_sequence",
        "builder",
        "closed",
        "data",
        "deadline",
        "done",
        "futures",
        "last_error",
        "level",
        "linger",
        "queue",
        "reserved_bytes",
        "timestamps",
    )

    def __init__(self, queue: PartitionQueue, builder: RecordBatchBuilder, linger: bool, deadline: float) -> None:
        self.queue = queue
        self.builder: RecordBatchBuilder | None = builder
        self.level = builder.level
        self.data: bytes | None = None
        self.linger = linger  # may wait for more records
        self.deadline = deadline
        self.futures: list[asyncio.Future[RecordMetadata]] = []
        self.timestamps: list[int] = []
        self.reserved_bytes = 0
        self.closed = False  # takes no more records
        self.done = False  # delivered or failed
        self.attempts = 0
        self.base_sequence = NO_SEQUENCE  # of an idempotent producer's batch, once it was sent
        self.last_error: BaseException | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._halves: tuple[ProducerBatch, ...] = ()

    def __len__(self) -> int:
        return len(self.futures)

    def append(
        self,
        timestamp: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Sequence[tuple[str, Buffer | None]],
        future: asyncio.Future[RecordMetadata],
        reserved_bytes: int,
    ) -> bool:
        """Add a record with its future. Returns False if it does not fit."""
        assert self.builder is not None
        if not self.builder.append(timestamp, key, value, headers):
            return False
        self.futures.append(future)
        self.timestamps.append(timestamp)
        self.reserved_bytes += reserved_bytes
        return True

    def append_values(
        self,
        timestamp: int,
        values: Sequence[Buffer | None],
        headers: Sequence[tuple[str, Buffer | None]],
        future: asyncio.Future[RecordMetadata],
        keys: Sequence[Buffer | None] | None,
    ) -> int:
        """Add records as long as they fit, all with one future; return how many. `keys` None: they have no keys.

        The future gets the metadata of the first one. The caller reserves their memory (`reserved_bytes`).
        """
        assert self.builder is not None
        count = self.builder.append_values(timestamp, values, headers, keys)
        self.futures += [future] * count
        self.timestamps += [timestamp] * count
        return count

    def stamp(self, producer_id: int, epoch: int, base_sequence: int) -> None:
        """Set producer id, epoch and base sequence of the closed batch. Raises ValueError as `encode` does."""
        self.base_sequence = base_sequence
        if self.data is not None:
            self.data = restamp(self.data, producer_id, epoch, base_sequence)
            return
        assert self.builder is not None
        self.builder.producer_id = producer_id
        self.builder.producer_epoch = epoch
        self.builder.base_sequence = base_sequence

    def encode(self) -> bytes:
        """Close the batch and return its bytes. They are built once, so that every attempt sends the same bytes."""
        if self.data is None:
            assert self.builder is not None
            self.closed = True
            self.data = self.builder.build()
            self.queue.ratio.observe(len(self.data), self.builder.uncompressed_bytes)
            self.builder = None
        return self.data

    def deliver(self, result: ProducePartitionResult) -> None:
        """Resolve every record's future with its offset and timestamp."""
        self.done = True
        topic, partition = self.queue.topic_partition
        offset = result.base_offset
        append_time = result.log_append_time_ms
        step = 0 if offset == NO_OFFSET else 1
        first = 0
        for future, run in groupby(self.futures):  # records that were sent together share a future
            if not future.done():  # the caller of send() may have cancelled it
                timestamp = self.timestamps[first] if append_time < 0 else append_time
                future.set_result(_new_metadata(RecordMetadata, (topic, partition, offset + first * step, timestamp)))
            first += len(list(run))
        self._finish()

    def fail(self, error: BaseException) -> None:
        """Fail every record's future with `error`."""
        self.done = True
        for future in self.futures:
            if not future.done():
                future.set_exception(error)
                future.exception()  # mark it as retrieved: one log line per batch is enough, without one per record
        self._finish()

    async def wait(self) -> None:
        """Wait until the batch is delivered or has failed."""
        if not self.done:
            if self._waiter is None:
                self._waiter = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._waiter)
        for half in self._halves:
            await half.wait()

    def superseded_by(self, halves: tuple[ProducerBatch, ProducerBatch]) -> None:
        """Replace this batch by its `halves`; waiting for it then means waiting for both."""
        self.done = True
        self._halves = halves
        self._finish()

    def _finish(self) -> None:
        self.builder = None
        self.data = None
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class PartitionQueue:
    """One partition's batches, oldest first. The last one takes records unless it is closed."""

    __slots__ = ("batches", "in_flight", "paused", "ratio", "sequences", "topic_partition")

    def __init__(self, topic_partition: TopicPartition, ratio: CompressionRatio) -> None:
        self.topic_partition = topic_partition
        self.ratio = ratio
        self.batches: deque[ProducerBatch] = deque()
        self.in_flight = False
        self.paused = False  # between two attempts
        self.sequences = LineSequences()
