"""Sends one task's rows to the broker, on an event loop of its own.

Without an identity the producer is idempotent within the task only: at least once, since Spark retries failed tasks.
With an identity, records of this micro-batch that are already stored are left out (given_identity.py). This requires
the same rows in the same order on each retry, as a source and narrow transformations produce them. After a shuffle
Spark guarantees no order; `sortWithinPartitions` by a unique column restores one. A replay with fewer records than are
already stored is detected and fails.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.clients.errors import ClientConfigError
from barnabas.clients.producer.given_identity import ProducerIdentity, new_identity
from barnabas.clients.producer.partitioner import partition_for_key
from barnabas.clients.producer.producer import Producer
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.sink.identity import TaskIdentity
from barnabas.pipeline.sink.rows import SinkRecord
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    import asyncio

    from barnabas.clients.config import ProducerConfig
    from barnabas.clients.records import RecordMetadata

KEYLESS_RUN = 500
"""Records without a key sent to one partition before the next one: full batches, by a rule that a replay repeats."""


@dataclass(frozen=True, slots=True)
class Written:
    """Records that a task sent, and those that an earlier attempt had stored."""

    sent: int
    already_there: int


async def send_once(config: ProducerConfig, records: Iterable[SinkRecord]) -> Written:
    """Send all records, at least once. Raises ClientError when a record was not delivered."""
    async with Producer(config) as producer:
        return Written(await send_all(producer, records), 0)


async def send_all(producer: Producer, records: Iterable[SinkRecord]) -> int:
    """Send all records, wait for their delivery and return their number. Raises ClientError."""
    deliveries = _Deliveries()
    for record in records:
        deliveries.add(
            await producer.send(
                record.topic,
                record.value,
                record.key,
                headers=record.headers,
                timestamp_ms=record.timestamp_ms,
                partition=record.partition,
            )
        )
    await deliveries.finish(producer)
    return deliveries.count


async def send_what_is_missing(
    config: ProducerConfig, records: Iterable[SinkRecord], kept: TaskIdentity, task: int
) -> Written:
    """Send the records of the micro-batch that are not stored yet. Raises ClientError, PipelineError, OSError."""
    if kept.needs_producer_id:
        begun = await new_identity(config)
        kept.keep_producer_id(begun.producer_id, begun.cluster_id)
    identity = kept.producer()
    async with Producer(config, identity=identity) as producer:
        placing = _Placing(producer, identity, kept, task)
        deliveries = _Deliveries()
        seen: Counter[TopicPartition] = Counter()
        already_there = 0
        for record in records:
            partition = await placing.partition_of(record)
            topic_partition = TopicPartition(record.topic, partition)
            seen[topic_partition] += 1
            if seen[topic_partition] <= identity.stored(topic_partition):
                already_there += 1
                continue
            deliveries.add(
                await producer.send(
                    record.topic,
                    record.value,
                    record.key,
                    headers=record.headers,
                    timestamp_ms=record.timestamp_ms,
                    partition=partition,
                )
            )
        await deliveries.finish(producer)
    _ensure_same_rows(identity, seen, placing)
    return Written(deliveries.count, already_there)


class _Placing:
    """Chooses the partition of a record, by a rule that a replay repeats."""

    def __init__(self, producer: Producer, identity: ProducerIdentity, kept: TaskIdentity, task: int) -> None:
        self.counts: dict[str, int] = {}
        self._producer = producer
        self._identity = identity
        self._kept = kept
        self._keyless: Counter[str] = Counter()
        self._first = task + identity.epoch

    async def partition_of(self, record: SinkRecord) -> int:
        count = self.counts.get(record.topic)
        if count is None:
            count = self.counts[record.topic] = await self._count(record.topic)
        if record.partition is not None:
            return record.partition
        if record.key is not None:
            return partition_for_key(record.key, count)
        number = self._keyless[record.topic]
        self._keyless[record.topic] = number + 1
        return (self._first + number // KEYLESS_RUN) % count

    async def _count(self, topic: str) -> int:
        now = await self._producer.partitions_for(topic)
        try:
            await self._producer.resume(topic)
        except ClientConfigError as error:
            raise PipelineError(
                f"{self._kept.where} belongs to another cluster: {error}; start again with an empty checkpoint"
            ) from error
        has_begun = any(self._identity.stored(TopicPartition(topic, number)) for number in range(now))
        return self._kept.partitions(topic, now, has_begun=has_begun)


class _Deliveries:
    """Futures of sent records, dropped once done; the first failure is raised early."""

    def __init__(self) -> None:
        self.count = 0
        self._waiting: deque[asyncio.Future[RecordMetadata]] = deque()

    def add(self, future: asyncio.Future[RecordMetadata]) -> None:
        waiting = self._waiting
        waiting.append(future)
        self.count += 1
        while waiting and waiting[0].done():
            waiting.popleft().result()

    async def finish(self, producer: Producer) -> None:
        await producer.flush()
        for future in self._waiting:
            future.result()
        self._waiting.clear()


def _ensure_same_rows(identity: ProducerIdentity, seen: Counter[TopicPartition], placing: _Placing) -> None:
    for topic, count in placing.counts.items():
        for number in range(count):
            topic_partition = TopicPartition(topic, number)
            stored = identity.stored(topic_partition)
            if seen[topic_partition] < stored:
                raise PipelineError(
                    f"{topic_partition} contains {stored} records of this micro-batch, but its replay has only "
                    f"{seen[topic_partition]}: the query returns different rows when it is run again, so stored and "
                    "missing records cannot be told apart (replaySafe=false writes at least once)"
                )
