"""Reading from a broker in the native dialect: offsets for the driver, records for a task.

Each task has an event loop and a connection of its own, opened in `read()` because readers are pickled. The next fetch
is sent before the records of the last one are decoded, so broker and task work in parallel.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from barnabas.clients.config import ConsumerConfig
from barnabas.clients.consumer.fetched import end_of_whole_batches, size_of_partial_batch
from barnabas.clients.errors import RefusedError
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.retrying import with_retries
from barnabas.clients.offsets import list_offsets
from barnabas.pipeline.errors import CorruptLogError, OptionError
from barnabas.pipeline.reading.batches import BatchReader, ReadRules
from barnabas.pipeline.reading.offsets import OffsetRange, Offsets, TopicIds, names_of
from barnabas.pipeline.reading.options import ReadOptions, Subscription
from barnabas.pipeline.reading.ranges import data_loss, split_by_count
from barnabas.pipeline.source.fetcher import PartFetcher, TopicGoneError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.fetch import (
    FetchPartitionResult,
)
from barnabas.protocol.messages.data.list_offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from barnabas.protocol.messages.topics.metadata import MetadataResponse
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.uuids import ZERO_UUID, uuid_text

T = TypeVar("T")

EMPTY_ANSWERS = 5
"""After this many empty answers below the high watermark, each after the broker's wait, no record is left there."""


class BrokerPart(InputPartition):
    """The range that one task fetches, and the id that the topic had when it was planned."""

    def __init__(self, part: OffsetRange, topic_id: str | None = None) -> None:
        super().__init__(part)
        self.part = part
        self.topic_id = topic_id


class BrokerLog:
    """The ReadableLog of a broker: connects at first use and runs its requests on one event loop."""

    def __init__(self, client: ConsumerConfig, subscription: Subscription, options: ReadOptions) -> None:
        self._client = client
        self._subscription = subscription
        self._options = options
        self._isolation = 1 if options.read_committed else 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._cluster: Cluster | None = None
        self._topic_ids: TopicIds = {}
        self._found_topics: set[str] = set()

    def partitions(self) -> frozenset[TopicPartition]:
        """See ReadableLog. A topic that was found before and is gone now is left out. Raises OptionError."""
        subscription = self._subscription
        return self._run(self._find_partitions(subscription))

    def topic_ids(self) -> TopicIds:
        """See ReadableLog."""
        return self._topic_ids

    def earliest(self, partitions: Collection[TopicPartition]) -> Offsets:
        """See ReadableLog."""
        return self._listed(dict.fromkeys(partitions, EARLIEST_TIMESTAMP))

    def latest(self, partitions: Collection[TopicPartition]) -> Offsets:
        """Return the high watermarks; under read_committed the last stable offsets."""
        return self._listed(dict.fromkeys(partitions, LATEST_TIMESTAMP))

    def at(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """See ReadableLog."""
        return {partition: None if offset < 0 else offset for partition, offset in self._listed(timestamps).items()}

    def parts(self, ranges: Sequence[OffsetRange], min_timestamp: int | None) -> Sequence[BrokerPart]:
        """Return one part for each range, or more for minPartitions and maxRecordsPerPartition."""
        if min_timestamp is not None and ranges:
            found = self.at({each.topic_partition: max(0, min_timestamp) for each in ranges})
            ranges = [_from_offset(each, found[each.topic_partition]) for each in ranges]
        options = self._options
        parts = split_by_count(ranges, options.min_partitions, options.max_records_per_partition)
        return [BrokerPart(part, self._topic_ids.get(part.topic_partition.topic)) for part in parts]

    def close(self) -> None:
        """Close the connections."""
        loop, self._loop = self._loop, None
        cluster, self._cluster = self._cluster, None
        if loop is None:
            return
        if cluster is not None:
            loop.run_until_complete(cluster.close())
        loop.close()

    def _listed(self, timestamps: Mapping[TopicPartition, int]) -> Offsets:
        if not timestamps:
            return {}
        listed = self._run(self._list(timestamps))
        return {partition: entry.offset for partition, entry in listed.items()}

    async def _list(self, timestamps: Mapping[TopicPartition, int]) -> Any:
        return await list_offsets(await self._started(), self._client, timestamps, self._isolation)

    async def _find_partitions(self, subscription: Subscription) -> frozenset[TopicPartition]:
        cluster = await self._started()
        asked = None
        if subscription.pattern is None:
            asked = sorted(subscription.topics or {partition.topic for partition in subscription.partitions})
            for topic in asked:
                if topic not in self._found_topics:
                    await self._require(cluster, subscription, topic)
                    self._found_topics.add(topic)

        async def load() -> MetadataResponse:
            return await cluster.load(asked)

        response = await with_retries(self._client, "metadata", load)
        found = frozenset(
            TopicPartition(topic.topic_name, entry.partition)
            for topic in response.topics
            if topic.error is ErrorCode.NONE and subscription.matches(topic.topic_name)
            for entry in topic.partitions
        )
        self._topic_ids = {
            topic.topic_name: uuid_text(topic.topic_id) for topic in response.topics if topic.topic_id != ZERO_UUID
        }
        if subscription.partitions:
            missing = subscription.partitions - found
            if missing:
                raise OptionError(
                    f"option {subscription.option}: there is no partition {names_of(missing)} at {self._options.place}"
                )
            return subscription.partitions
        return found

    async def _require(self, cluster: Cluster, subscription: Subscription, topic: str) -> None:
        try:
            await cluster.require_topic(topic, self._client.api_timeout_ms)
        except RefusedError as error:
            raise OptionError(f"option {subscription.option}: {error.message} (at {self._options.place})") from error

    async def _started(self) -> Cluster:
        if self._cluster is None:
            cluster = Cluster(self._client)
            await cluster.start()
            self._cluster = cluster
        return self._cluster

    def _run(self, asked: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(asked)


def read_from_broker(options: ReadOptions, rules: ReadRules, planned: BrokerPart) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one part. Raises the errors that `in_one_sentence` handles."""
    assert options.client is not None
    part = planned.part
    loop = asyncio.new_event_loop()
    isolation = 1 if options.read_committed else 0
    fetcher = PartFetcher(options.client, part.topic_partition, loop, isolation, planned.topic_id)
    try:
        yield from _read(options, rules, part, fetcher)
    finally:
        fetcher.close()
        loop.close()


def _read(options: ReadOptions, rules: ReadRules, part: OffsetRange, fetcher: PartFetcher) -> Iterator[pa.RecordBatch]:
    reader = BatchReader(rules, part)
    place = f"{part.topic_partition} at the broker {fetcher.bootstrap}"
    fetcher.ask(part.start)
    empty_answers = 0
    while reader.next_offset < part.end and not reader.at_end:
        due = reader.next_offset
        try:
            answer = fetcher.answer()
        except TopicGoneError as error:
            lost = f"{part.end - due} offsets, {due} to {part.end - 1}, are gone"
            data_loss(options, f"{part.topic_partition}: {lost}: {error}")
            break
        result = answer.result
        if result.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            _out_of_range(options, part, reader, result)
            fetcher.ask(reader.next_offset)
            continue
        if result.error is not ErrorCode.NONE:
            raise RefusedError.of_partition(part.topic_partition, result.error, None)
        reader.aborted(result.aborted or ())
        next_offset, whole = end_of_whole_batches(answer.data, due)
        if not whole:
            empty_answers += not len(answer.data)
            readable = due < _readable_end(options, result)
            if len(answer.data) or (readable and empty_answers < EMPTY_ANSWERS):
                fetcher.ask_for_more(due, size_of_partial_batch(answer.data))
                continue
            gone = f"{part.topic_partition}: offsets {due} to {part.end - 1} are gone, "
            data_loss(options, gone + ("no record is left in them" if readable else f"the log ends at offset {due}"))
            break
        empty_answers = 0
        if next_offset < part.end:
            fetcher.ask(next_offset)
        yield from reader.read(answer.data[:whole], place)
        if reader.is_lost:
            raise CorruptLogError(f"{place}: the position of the batch after offset {reader.next_offset} is unknown")
        reader.skip_to(next_offset)
    _tell_if_another(options, part, fetcher)
    yield from reader.finish()


def _tell_if_another(options: ReadOptions, part: OffsetRange, fetcher: PartFetcher) -> None:
    """Raise DataLossError, or warn, when the topic was replaced by another of the same name while it was read."""
    try:
        fetcher.ensure_same_topic()
    except TopicGoneError as error:
        data_loss(
            options,
            f"{part.topic_partition}: offsets {part.start} to {part.end - 1} may be from another log: {error}",
        )


def _readable_end(options: ReadOptions, result: FetchPartitionResult) -> int:
    return result.last_stable_offset if options.read_committed else result.high_watermark


def _out_of_range(options: ReadOptions, part: OffsetRange, reader: BatchReader, result: FetchPartitionResult) -> None:
    """Continue at the log start offset, or end, when the next offset does not exist. Raises DataLossError."""
    due = reader.next_offset
    log_start = result.log_start_offset
    lost = min(max(log_start, due), part.end) - due if due < log_start else part.end - due
    gone = f"{part.topic_partition}: offset {due} is gone, the log is {log_start} to {result.high_watermark}"
    data_loss(options, f"{gone}: {lost} offsets are missing")
    reader.skip_to(log_start if due < log_start else part.end)


def _from_offset(whole: OffsetRange, offset: int | None) -> OffsetRange:
    start = whole.end if offset is None else min(max(whole.start, offset), whole.end)
    return OffsetRange(whole.topic_partition, start, whole.end)
