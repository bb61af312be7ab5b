"""Consumer: records of partitions that a group shares out or that are assigned, one by one or in lists.

    async with Consumer(ConsumerConfig(bootstrap="127.0.0.1:9092", group="billing")) as consumer:
        await consumer.subscribe(["orders"])            # or: await consumer.assign([TopicPartition("orders", 0)])
        async for record in consumer:
            ...

Records of a partition come in the order of their offsets; partitions take turns, a batch each. What goes wrong with a
partition is raised by the next poll or step of the iteration, once what was fetched before has been handed out; the
consumer stays usable, and tries that partition again when it is asked for more.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Self

from barnabas.clients.config import ConsumerConfig
from barnabas.clients.consumer.fetcher import Fetcher
from barnabas.clients.consumer.partition_state import NO_POSITION, PartitionState
from barnabas.clients.consumer.subscription import NOTHING, ConsumerSubscription
from barnabas.clients.errors import ClientError, ClosedError, CorruptBatchError
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.offsets import ensure_partition
from barnabas.clients.records import ConsumerRecord
from barnabas.protocol.topic_partition import TopicPartition

DEFAULT_POLL_TIMEOUT_MS = 1_000

RECORDS_BETWEEN_YIELDS = 500
"""After so many records (and at a batch's end) the iteration lets the event loop come round."""


class Consumer(ConsumerSubscription):
    """Use it as an async context manager, or call `start` and `close`. One reader at a time, in one thread."""

    def __init__(self, config: ConsumerConfig | None = None) -> None:
        config = config or ConsumerConfig()
        super().__init__(config, Cluster(config))
        self._fetcher: Fetcher | None = None
        self._line: deque[PartitionState] = deque()  # partitions with something to hand out; the first has its turn
        self._current: PartitionState | None = None  # whose decoded batch the iteration hands out
        self._handed_out = 0  # by the iteration, since it last let the event loop come round
        self._reading = False
        self._closing = False
        self._closed = False

    async def start(self) -> None:
        """Reach a broker. Raises BrokerConnectionError at once when none of the bootstrap list answers."""
        try:
            await self._cluster.start()
        except BaseException:
            await self._cluster.close()
            raise
        self._fetcher = Fetcher(self._cluster, self.config)

    async def close(self, *, commit: bool = True) -> None:
        """Leave the group and close the connections; who waits in poll or an iteration gets ClosedError. Idempotent.

        Before that a consumer with a group and auto_commit commits, unless not `commit`, what it has handed out.
        """
        if not self._closing and not self._closed and self._fetcher is not None:
            self._closing = True
            self._fetcher.arrived.set()
            try:
                await self._leave(commit=commit, reason="the consumer is closing")
            finally:
                await self._close()
        else:
            await self._close()

    async def _close(self) -> None:
        self._closed = True
        if self._fetcher is not None:
            await self._fetcher.close()
            self._fetcher.arrived.set()
        await self._cluster.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close(commit=error is None)  # else what was handed out last may not have been worked on

    # what is read

    async def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read exactly these partitions from now on. Those that were assigned before keep their positions.

        A new one begins where `seek` puts it, or with a group where that has committed, or where offset_reset says.
        Raises UnknownTopicError, with nothing changed, when one does not exist.
        """
        fetcher = self._opened()
        if self._member is not None:
            raise ClientError("the consumer is subscribed, and its group assigns: unsubscribe first")
        wanted = dict.fromkeys(TopicPartition(*partition) for partition in partitions)
        for partition in wanted:
            await ensure_partition(self._cluster, self.config, partition)
        new = [partition for partition in wanted if partition not in fetcher.states]
        committed = await self._committed(new) if new and self.config.group is not None else NOTHING
        if fetcher.states and self.config.group is not None and self.config.auto_commit:
            await self._commit_by_itself()
        self._adopt(wanted, committed)
        self._begin_to_commit()

    @property
    def assignment(self) -> tuple[TopicPartition, ...]:
        """The assigned partitions."""
        return tuple(self._opened().states)

    async def partitions_for(self, topic: str) -> tuple[TopicPartition, ...]:
        """All partitions of a topic. Raises UnknownTopicError."""
        self._opened()
        view = await self._cluster.require_topic(topic, self.config.api_timeout_ms)
        return tuple(TopicPartition(topic, partition) for partition in range(len(view.leaders)))

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out nothing of these (all assigned ones by default) until `resume`. What is fetched is kept."""
        for state in self._states(partitions):
            state.paused = True
            if self._current is state:
                self._current = None

    def resume(self, *partitions: TopicPartition) -> None:
        """Undo `pause`."""
        fetcher = self._opened()
        for state in self._states(partitions):
            if not state.paused:
                continue
            state.paused = False
            if state.has_data or state.error is not None:
                self._enqueue(state)
            elif not state.in_request:
                fetcher.interrupt(state.topic_partition)
        fetcher.arrived.set()
        self._wake()

    @property
    def paused(self) -> tuple[TopicPartition, ...]:
        """The paused ones of the assigned partitions."""
        return tuple(partition for partition, state in self._opened().states.items() if state.paused)

    # records

    async def poll(
        self, max_records: int | None = None, timeout_ms: float = DEFAULT_POLL_TIMEOUT_MS
    ) -> list[ConsumerRecord]:
        """Up to `max_records` (default: max_poll_records), waiting at most `timeout_ms` for the first; [] for none.

        Raises what went wrong with a partition: OffsetOutOfRangeError, CorruptBatchError, UnknownTopicError,
        RefusedError, or BrokerConnectionError when its broker could not be reached for api_timeout_ms.
        """
        fetcher = self._start_reading()
        limit = self.config.max_poll_records if max_records is None else max_records
        if limit < 1:
            raise ValueError(f"max_records={limit} is not positive")
        await asyncio.sleep(0)  # a loop around poll() must let fetching go on, and others run
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        self._read_begins()
        try:
            while True:
                if self._wants_attention:
                    await self._attend()  # not within the timeout: it would leave a rebalance half done
                records = self._take(limit)
                if records or timeout_ms <= 0:
                    return records
                try:
                    async with asyncio.timeout_at(deadline):
                        await fetcher.arrived.wait()
                except TimeoutError:
                    return []
        finally:
            self._read_ends()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConsumerRecord:
        state = self._current
        if state is not None:
            index = state.index
            records = state.records
            if index + 1 < len(records):  # the hot path: not the last one of its batch
                state.index = index + 1
                record = records[index]
                state.position = record.offset + 1
                return record
        self._read_begins()
        try:
            return await self._next_record()
        finally:
            self._read_ends()

    async def _next_record(self) -> ConsumerRecord:
        """The first record of a batch, or of what is left of one."""
        while True:
            fetcher = self._start_reading()
            self._current = None
            if self._handed_out >= RECORDS_BETWEEN_YIELDS:
                self._handed_out = 0
                await asyncio.sleep(0)  # a loop over buffered records must let fetching go on, and others run
            if self._wants_attention:
                await self._attend()
            found = self._next_batch()
            if found is not None:
                self._handed_out += len(found.records)
                (record,) = found.take(1)
                if found.records:
                    self._current = found  # still the first in line: its turn ends with the batch
                else:
                    self._turn_over(found)
                return record
            await fetcher.arrived.wait()

    @property
    def buffered_bytes(self) -> int:
        """Memory held by what is fetched and not read yet; see prefetch_bytes."""
        return self._opened().buffered_bytes

    # inside

    def _adopt(self, wanted: Iterable[TopicPartition], committed: Mapping[TopicPartition, int]) -> None:
        """Have exactly these partitions; new ones begin where `committed` says, or without a position."""
        fetcher = self._opened()
        ours = frozenset(wanted)
        for partition in [partition for partition in fetcher.states if partition not in ours]:
            state = fetcher.states.pop(partition)
            fetcher.release(state.move_to(NO_POSITION))
        for partition in wanted:
            if partition not in fetcher.states:
                state = fetcher.states[partition] = PartitionState(partition, self.config.max_partition_bytes)
                if partition in committed:
                    state.move_to(committed[partition])
        if self._current is not None and self._current.topic_partition not in ours:
            self._current = None
        self._line = deque(state for state in self._line if state.topic_partition in ours)
        self._wake()

    def _take(self, limit: int) -> list[ConsumerRecord]:
        """Up to `limit` records of what is there. An error waits until what came before it was returned."""
        self._current = None
        records: list[ConsumerRecord] = []
        while len(records) < limit:
            try:
                state = self._next_batch()
            except ClientError as error:
                if not records:
                    raise
                self._postpone(error)
                break
            if state is None:
                break
            records += state.take(limit - len(records))
            if not state.records:
                self._turn_over(state)
        return records

    def _next_batch(self) -> PartitionState | None:
        """The first partition in line, with a decoded batch that has records; None when nothing is there.

        Raises the error of the partition whose turn it is.
        """
        fetcher = self._opened()
        if self._closing:
            raise ClosedError("the consumer is closed")
        if fetcher.ready:
            self._line.extend(fetcher.ready)
            fetcher.ready.clear()
        while self._line:
            state = self._line[0]
            if state.paused or fetcher.states.get(state.topic_partition) is not state:
                self._leave_line()
            elif state.index < len(state.records):
                return state
            elif state.slices:
                self._decode(fetcher, state)
            elif state.error is not None:
                error, state.error = state.error, None
                self._leave_line()
                fetcher.changed()
                if not self._forgives(error):
                    raise error
            else:
                self._leave_line()
        fetcher.arrived.clear()
        return None

    def _decode(self, fetcher: Fetcher, state: PartitionState) -> None:
        """Decode the partition's next batch, or be done with its first slice."""
        piece = state.slices[0]
        was_full = fetcher.is_full(state)
        try:
            batch = piece.read_batch(state.position)
        except CorruptBatchError:
            position = state.position
            fetcher.release(state.move_to(position))
            fetcher.changed()
            raise
        if batch is not None:
            state.records, state.index, state.batch_end = batch.records, 0, batch.next_offset
            if not batch.records:  # a control batch, or an aborted one
                state.take(0)
        if batch is None or piece.remaining_bytes == 0:
            state.slices.popleft()
            fetcher.release([piece])
        fetcher.consumed(state, was_full=was_full)

    def _turn_over(self, state: PartitionState) -> None:
        """A batch was handed out: the next partition's turn."""
        if self._line and self._line[0] is state:
            self._line.rotate(-1)

    def _leave_line(self) -> None:
        self._line.popleft().queued = False

    def _enqueue(self, state: PartitionState) -> None:
        if not state.queued:
            state.queued = True
            self._line.append(state)

    def _postpone(self, error: ClientError) -> None:
        """Keep an error for the next poll: records that were taken already must not be lost to it."""
        partition = TopicPartition(getattr(error, "topic", ""), getattr(error, "partition", -1))
        state = self._opened().states.get(partition)
        if state is not None and state.error is None:
            state.error = error
            self._enqueue(state)

    def _wake(self) -> None:
        if self._reading:
            self._opened().changed()

    def _start_reading(self) -> Fetcher:
        """Fetching begins with the first read, so that a seek before it costs nothing."""
        fetcher = self._opened()
        if not self._reading:
            self._reading = True
            fetcher.changed()
        return fetcher

    def _opened(self) -> Fetcher:
        if self._fetcher is None or self._closed:
            raise ClosedError(
                "the consumer is closed" if self._closed else "the consumer is not started: use async with"
            )
        return self._fetcher
