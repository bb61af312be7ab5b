"""One task's rows on their way to the broker, on an event loop of its own.

Without an identity the producer is idempotent within the task: at least once, since Spark runs a failed task again.
With one, what the partitions have of this micro-batch already is left out (given_identity.py). That takes the
same rows in the same order from whoever runs the task again: what a source and narrow transformations give. After a
shuffle the order is not promised by Spark: `sortWithinPartitions` by something unique makes it so. A replay with fewer
records than are stored already is noticed, and fails.
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
"""So many records without a key go to one partition before the next one's turn: full batches, and a rule to repeat."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a task did: records that it sent, and those that were there already."""

    sent: int
    already_there: int


async def send_once(config: ProducerConfig, records: Iterable[SinkRecord]) -> Written:
    """At least once. Raises ClientError when a record was not delivered."""
    async with Producer(config) as producer:
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
        return Written(deliveries.count, 0)


async def send_what_is_missing(
    config: ProducerConfig, records: Iterable[SinkRecord], kept: TaskIdentity, task: int
) -> Written:
    """Each record of the micro-batch once, however often this is run. Raises ClientError, PipelineError, OSError."""
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
    """Which partition a record belongs to, by a rule that gives the same answer in a replay."""

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
                f"{self._kept.where} is of another cluster: {error}; begin anew with an empty one"
            ) from error
        has_begun = any(self._identity.stored(TopicPartition(topic, number)) for number in range(now))
        return self._kept.partitions(topic, now, has_begun=has_begun)


class _Deliveries:
    """The futures of records that were sent, let go as they are done; the first failure is raised soon."""

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
                    f"{topic_partition} holds {stored} records of this micro-batch, and its replay has only "
                    f"{seen[topic_partition]}: the query gives other rows when it is run again, so what was added and "
                    "what is missing cannot be told (replaySafe=false writes at least once)"
                )
