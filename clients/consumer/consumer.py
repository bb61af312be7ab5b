"""Consumer: records of partitions that a group shares out or that are assigned by hand, one by one or in lists.

    async with Consumer(ConsumerConfig(bootstrap="127.0.0.1:9092", group="billing")) as consumer:
        await consumer.subscribe(["orders"])            # or: await consumer.assign([TopicPartition("orders", 0)])
        async for record in consumer:
            ...

Records of a partition come in the order of their offsets; partitions take turns, a batch each. A partition's error is
raised by the next poll or step of the iteration, after the records fetched before it have been handed out. The consumer
stays usable, and tries that partition again with the next read.

This class is the public API and the read loop. Its parts: RecordQueue (assigned partitions, fetched records),
ConsumerSubscription (group membership, rebalances), OffsetCommits, ConsumerPositions (seeking), LogOffsets.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Self

from barnabas.clients.config import ConsumerConfig
from barnabas.clients.consumer.assigned_partition import AssignedPartition
from barnabas.clients.consumer.fetcher import Fetcher
from barnabas.clients.consumer.log_offsets import LogOffsets
from barnabas.clients.consumer.positions import ConsumerPositions
from barnabas.clients.consumer.read_activity import ReadActivity
from barnabas.clients.consumer.rebalance_listener import RebalanceListener
from barnabas.clients.consumer.record_queue import RecordQueue
from barnabas.clients.consumer.subscription import ConsumerSubscription
from barnabas.clients.errors import ClientError, UnknownTopicError
from barnabas.clients.group_offsets import ConsumerGroupMetadata
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.offsets import ListedOffset
from barnabas.clients.records import ConsumerRecord
from barnabas.protocol.messages.data.list_offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from barnabas.protocol.topic_partition import TopicPartition

DEFAULT_POLL_TIMEOUT_MS = 1_000

RECORDS_BETWEEN_YIELDS = 500
"""After this many records, at the end of a batch, the iteration yields to the event loop."""


class Consumer:
    """Use it as an async context manager, or call `start` and `close`. One reader at a time, in one thread."""

    def __init__(self, config: ConsumerConfig | None = None) -> None:
        self.config = config = config or ConsumerConfig()
        self._cluster = cluster = Cluster(config)
        self._queue = queue = RecordQueue(config)
        self._activity = ReadActivity(queue)
        self._subscription = ConsumerSubscription(cluster, config, queue, self._activity)
        self._commits = self._subscription.commits
        self._log_offsets = LogOffsets(cluster, config, queue)
        self._positions = ConsumerPositions(config, queue, self._log_offsets)
        self._handed_out = 0  # records, by the iteration, since it last yielded to the event loop

    async def start(self) -> None:
        """Connect to a broker. Raises BrokerConnectionError immediately when none of the bootstrap list answers."""
        try:
            await self._cluster.start()
        except BaseException:
            await self._cluster.close()
            raise
        self._queue.open(Fetcher(self._cluster, self.config))

    async def close(self, *, commit: bool = True) -> None:
        """Leave the group and close the connections. A waiting poll or iteration raises ClosedError. Idempotent.

        Before that, a consumer with a group and auto_commit commits the records handed out, unless `commit` is False.
        """
        try:
            if self._queue.begin_closing():
                await self._subscription.leave(commit=commit, reason="the consumer is closing")
        finally:
            await self._queue.close()
            await self._cluster.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close(commit=error is None)  # after an error the last records may not have been processed

    # assigned and subscribed partitions

    async def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read exactly these partitions from now on. Partitions that were assigned before keep their positions.

        A new one starts at its `seek`, else with a group at the committed offset, else by offset_reset.
        Raises UnknownTopicError, with nothing changed, when one does not exist.
        """
        await self._subscription.assign(partitions)

    @property
    def assignment(self) -> tuple[TopicPartition, ...]:
        """The assigned partitions."""
        return tuple(self._queue.states)

    async def subscribe(
        self,
        topics: Iterable[str] | None = None,
        listener: RebalanceListener | None = None,
        *,
        pattern: str | re.Pattern[str] | None = None,
    ) -> None:
        """Share the partitions of these topics with the group's other members. The next reads join the group.

        `pattern` instead of topics is a regular expression that must match a topic's whole name: a text in RE2's
        syntax, or a compiled pattern of `re`. Matching topics that are created later are read within
        metadata_max_age_ms; deleted ones are given up.

        The group assigns the partitions. Each starts at the group's committed offset, else by offset_reset. The topics
        replace those of an earlier call. Raises UnknownTopicError, with nothing changed, when one does not
        exist, ClientError without a group or when partitions were assigned by hand.
        """
        await self._subscription.subscribe(topics, listener, pattern)

    async def unsubscribe(self) -> None:
        """Leave the group, after a commit if auto_commit is on. Does nothing without a subscription."""
        self._queue.ensure_open()
        await self._subscription.leave(commit=True, reason="the consumer unsubscribed")

    @property
    def subscription(self) -> tuple[str, ...]:
        """The topics of `subscribe`; of a pattern those that match."""
        return self._subscription.topics

    async def partitions_for(self, topic: str) -> tuple[TopicPartition, ...]:
        """All partitions of a topic. Raises UnknownTopicError."""
        self._queue.ensure_open()
        view = await self._cluster.require_topic(topic, self.config.api_timeout_ms)
        return tuple(TopicPartition(topic, partition) for partition in range(len(view.leaders)))

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out no records of these partitions (default: all assigned) until `resume`. Fetched records are kept."""
        self._queue.pause(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        """Undo `pause`."""
        self._queue.resume(partitions)

    @property
    def paused(self) -> tuple[TopicPartition, ...]:
        """The assigned partitions that are paused."""
        return tuple(partition for partition, state in self._queue.states.items() if state.paused)

    # positions

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue this assigned partition at `offset`. If the log does not have it, offset_reset decides."""
        self._positions.seek(partition, offset)

    async def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Continue these partitions (default: all assigned) at their first record."""
        await self._positions.seek_all(partitions, EARLIEST_TIMESTAMP)

    async def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Continue these partitions (default: all assigned) after their last record."""
        await self._positions.seek_all(partitions, LATEST_TIMESTAMP)

    async def seek_to_timestamp(self, timestamps_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Continue each partition at its first record at or after a time (ms since 1970), or at its end without one.

        Returns the offsets.
        """
        return await self._positions.seek_to_timestamp(timestamps_ms)

    async def position(self, partition: TopicPartition) -> int:
        """The offset of the next record to hand out of this partition."""
        return await self._positions.position(partition)

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The positions of the assigned partitions, without those that have none before their first read."""
        return self._queue.positions()

    async def seek_to_committed(self, *partitions: TopicPartition) -> None:
        """Continue these partitions (default: all assigned) where the group has committed, else by offset_reset.

        Use it after an aborted transaction, whose records are to be read again. Raises as `committed`.
        """
        self._positions.restart(partitions, await self.committed(partitions or self.assignment))

    # the log's offsets, of any partition, assigned or not

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each partition."""
        return await self._log_offsets.at(partitions, EARLIEST_TIMESTAMP)

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset after the last readable record of each partition."""
        return await self._log_offsets.at(partitions, LATEST_TIMESTAMP)

    async def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, ListedOffset | None]:
        """The first record of each partition at or after a time (ms since 1970); None without one."""
        return await self._log_offsets.for_times(timestamps_ms)

    # the group's committed offsets

    async def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> dict[TopicPartition, int]:
        """Commit these offsets, by default the positions of all assigned partitions, and return them.

        With auto_commit, reads commit by themselves. Raises ClientError without a group, CommitFailedError when the
        consumer is no longer a member of its group, RefusedError.
        """
        return await self._commits.commit(offsets)

    async def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The group's committed offsets; partitions without one are left out. Raises as `commit`."""
        self._queue.ensure_open()
        return await self._commits.committed(TopicPartition(*partition) for partition in partitions)

    def group_metadata(self) -> ConsumerGroupMetadata:
        """The group and this consumer's current membership, for offsets that are committed in a transaction.

        Raises ClientError without a group, CommitFailedError when the consumer is no longer a member of its group.
        """
        return self._commits.group_metadata()

    @property
    def revoked_at(self) -> float:
        """The event loop's time at which the group last took partitions away; -inf if it never did."""
        return self._subscription.revoked_at

    # records

    async def poll(
        self, max_records: int | None = None, timeout_ms: float = DEFAULT_POLL_TIMEOUT_MS
    ) -> list[ConsumerRecord]:
        """Return up to `max_records` (default: max_poll_records), waiting at most `timeout_ms` for the first.

        Returns [] if none came. Raises a partition's error: OffsetOutOfRangeError, CorruptBatchError,
        UnknownTopicError, RefusedError, or BrokerConnectionError when its broker was unreachable for api_timeout_ms.
        """
        queue = self._queue
        fetcher = queue.start_reading()
        limit = self.config.max_poll_records if max_records is None else max_records
        if limit < 1:
            raise ValueError(f"max_records={limit} is not positive")
        await asyncio.sleep(0)  # a loop around poll() must not keep fetching, and other tasks, from running
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        self._activity.begin()
        try:
            while True:
                if self._subscription.wants_attention:
                    await self._subscription.attend()  # not within the timeout: it would cut a rebalance short
                records = self._take(limit)
                if records or timeout_ms <= 0:
                    return records
                try:
                    async with asyncio.timeout_at(deadline):
                        await fetcher.arrived.wait()
                except TimeoutError:
                    return []
        finally:
            self._activity.end()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConsumerRecord:
        state = self._queue.current
        if state is not None:
            index = state.index
            records = state.records
            if index + 1 < len(records):  # the hot path: not the last record of its batch
                state.index = index + 1
                record = records[index]
                state.position = record.offset + 1
                return record
        self._activity.begin()
        try:
            return await self._next_record()
        finally:
            self._activity.end()

    @property
    def buffered_bytes(self) -> int:
        """Memory of fetched records that have not been handed out; see prefetch_bytes."""
        return self._queue.fetcher.buffered_bytes

    async def _next_record(self) -> ConsumerRecord:
        """Wait for the next record that the hot path cannot return: the first or last one of its batch."""
        queue = self._queue
        while True:
            fetcher = queue.start_reading()
            queue.current = None
            if self._handed_out >= RECORDS_BETWEEN_YIELDS:
                self._handed_out = 0
                await asyncio.sleep(0)  # a loop over buffered records must not keep fetching from running
            if self._subscription.wants_attention:
                await self._subscription.attend()
            found = self._next_batch()
            if found is not None:
                self._handed_out += len(found.records)
                (record,) = found.take(1)
                if found.records:
                    queue.current = found  # it keeps its turn until the end of the batch
                else:
                    queue.end_turn(found)
                return record
            await fetcher.arrived.wait()

    def _take(self, limit: int) -> list[ConsumerRecord]:
        """Return up to `limit` fetched records. Raises an error only once the records before it have been returned."""
        queue = self._queue
        queue.current = None
        records: list[ConsumerRecord] = []
        while len(records) < limit:
            try:
                state = self._next_batch()
            except ClientError as error:
                if not records:
                    raise
                queue.postpone(error)
                break
            if state is None:
                break
            records += state.take(limit - len(records))
            if not state.records:
                queue.end_turn(state)
        return records

    def _next_batch(self) -> AssignedPartition | None:
        while True:
            try:
                return self._queue.next_batch()
            except UnknownTopicError as error:
                if not self._subscription.ignores(error):
                    raise
