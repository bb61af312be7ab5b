"""Keeps a consumer's partitions fetched ahead, within bounds: one loop and one connection per leading broker.

A partition is asked for while less than max_partition_bytes of it wait to be read and all that waits is below
prefetch_bytes. An answer's memory counts as a whole until the last of its partitions has been read, so the bound holds
for what is really kept; it can be passed by one answer, when a single batch is larger than what was asked for.

Fair: within a request the partition that waited longest for data comes first, because the broker fills its answer in
that order.

Fetches wait at the broker for data. One that leaves out partitions because enough of them is buffered must not wait:
they will want to be asked for in a moment, and the connection would be taken. And one that waits when a seek makes it
pointless is cut off, connection and all: the answer to the seek would otherwise come up to max_wait_ms late.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from barnabas.clients.config import ConsumerConfig
from barnabas.clients.consumer.assigned_partition import NO_POSITION, AssignedPartition
from barnabas.clients.consumer.fetch_failures import note_failure
from barnabas.clients.consumer.fetched import FetchedFrame, FetchedSlice, end_of_whole_batches, size_of_partial_batch
from barnabas.clients.consumer.offset_reset import OffsetResetter, isolation_level, reset_timestamp
from barnabas.clients.errors import (
    BrokerConnectionError,
    BrokerTimeoutError,
    ClientError,
    ClosedError,
    CorruptBatchError,
    OffsetOutOfRangeError,
    ProtocolViolationError,
    RefusedError,
)
from barnabas.clients.network.backoff import backoff_s
from barnabas.clients.network.cluster import NO_LEADER, Cluster, Purpose
from barnabas.clients.network.connection import Connection
from barnabas.protocol.errors import RETRIABLE_CODES, DecodeError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.fetch import (
    FetchPartition,
    FetchPartitionResult,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from barnabas.protocol.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

PROBE_INTERVAL_S = 0.05
"""How often partitions without data are asked for while their neighbours have enough buffered."""

FRAME_HEADROOM_BYTES = 64 * 1024
"""Of max_frame_bytes, left for an answer's header."""


class _NodeLoop:
    """One leader's loop: its task, the event that wakes it, and the request it waits for."""

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.wake = asyncio.Event()
        self.waiting_on: Connection | None = None
        self.interrupted = False
        self.reserved_bytes = 0


class Fetcher:
    """Owned by one consumer, which changes `states` and calls `changed`."""

    def __init__(self, cluster: Cluster, config: ConsumerConfig) -> None:
        self.states: dict[TopicPartition, AssignedPartition] = {}
        self.arrived = asyncio.Event()
        """Set when a partition has got data or an error."""
        self.ready: list[AssignedPartition] = []
        """Partitions that got data since the consumer last looked, in that order."""
        self.buffered_bytes = 0
        self._cluster = cluster
        self._config = config
        self._isolation = isolation_level(config)
        self._loop = asyncio.get_running_loop()
        self._nodes: dict[int, _NodeLoop] = {}
        self._resetter = OffsetResetter(self, cluster, config)
        self._looking_for_leaders = False
        self._answers = 0
        self._out_of_room = False
        self._closed = False

    # what the consumer calls

    def changed(self) -> None:
        """Look at all partitions: some may have a new position, a new leader, or room again."""
        if self._closed:
            return
        leaderless = False
        for state in self.states.values():
            if state.error is not None:
                continue
            if state.position == NO_POSITION:
                self._resetter.reset_soon()
                continue
            leader = self._cluster.leader(state.topic_partition)
            if leader == NO_LEADER:
                leaderless = True
                continue
            node = self._nodes.get(leader)
            if node is None:
                node = self._nodes[leader] = _NodeLoop()
                node.task = asyncio.create_task(self._run(leader, node), name=f"barnabas-fetch-{leader}")
                node.task.add_done_callback(self.ended)
            node.wake.set()
        if leaderless:
            self._look_for_leaders()

    def interrupt(self, topic_partition: TopicPartition) -> None:
        """Do not let this partition wait for a fetch that was sent without it, or with an offset that is void."""
        node = self._nodes.get(self._cluster.leader(topic_partition))
        if node is not None and node.waiting_on is not None:
            node.interrupted = True
            node.waiting_on.close(ClosedError("the fetch was given up for another one"))

    def is_full(self, state: AssignedPartition) -> bool:
        """Whether enough of this partition is buffered."""
        return state.buffered_bytes >= self._config.max_partition_bytes

    def consumed(self, state: AssignedPartition, *, was_full: bool) -> None:
        """Something of this partition was decoded: fetch on if that made the room that was missing."""
        if state.held and not state.slices and state.failing_since is None:
            state.held = False
            self.changed()
        elif self._out_of_room and self._free_bytes() > 0:
            self._out_of_room = False
            self.changed()
        elif was_full and not self.is_full(state):
            node = self._nodes.get(self._cluster.leader(state.topic_partition))
            if node is not None:
                node.wake.set()

    def release(self, slices: Iterable[FetchedSlice]) -> None:
        """Give back the memory of slices that have been read or dropped."""
        for piece in slices:
            piece.frame.slices -= 1
            if piece.frame.slices == 0:
                self.buffered_bytes -= piece.frame.size_bytes

    async def close(self) -> None:
        """End the loops. The connections are the cluster's."""
        self._closed = True
        tasks = [node.task for node in self._nodes.values() if node.task is not None]
        if self._resetter.task is not None:
            tasks.append(self._resetter.task)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def ended(self, task: asyncio.Task[None]) -> None:
        """A task that ended by an error of our own must not leave its reader waiting for ever."""
        if task.cancelled() or task.exception() is None:
            return
        error = task.exception()
        logger.error("%s ended by an error of its own", task.get_name(), exc_info=error)
        for state in self.states.values():
            self.fail(state, ClientError(f"{state.topic_partition}: reading failed by an internal error: {error!r}"))

    # the loop of one leader

    async def _run(self, leader: int, node: _NodeLoop) -> None:
        failures = 0
        while True:
            node.wake.clear()
            wanted, others_full = self._wanted(leader)
            if not wanted:
                await node.wake.wait()
                continue
            try:
                got_data = await self._fetch(leader, node, wanted, may_wait=not others_full)
                failures = 0
            except (BrokerConnectionError, BrokerTimeoutError, RefusedError, ClosedError) as error:
                if node.interrupted:
                    node.interrupted = False
                    continue
                failures += 1
                self._all_failed(wanted, error)
                self._cluster.refresh_soon()
                await asyncio.sleep(
                    backoff_s(failures, self._config.retry_backoff_ms, self._config.retry_backoff_max_ms)
                )
                self.changed()  # the leader may be another by now
                continue
            if others_full and not got_data:
                await self._pause_before_probe(node)

    def _wanted(self, leader: int) -> tuple[list[AssignedPartition], bool]:
        """(partitions of this leader to ask for, whether others of it were left out because enough is buffered)."""
        wanted = []
        others_full = False
        for state in self.states.values():
            if self._cluster.leader(state.topic_partition) != leader:
                continue
            if (
                state.position == NO_POSITION
                or state.paused
                or state.held
                or state.in_request
                or state.error is not None
            ):
                continue  # in_request: of the broker that led it before
            if self.is_full(state):
                others_full = True
            else:
                wanted.append(state)
        if self._free_bytes() <= 0:
            self._out_of_room = True
            return [], True
        wanted.sort(key=lambda state: state.served)
        return wanted, others_full

    def _free_bytes(self) -> int:
        reserved = sum(node.reserved_bytes for node in self._nodes.values())
        return self._config.prefetch_bytes - self.buffered_bytes - reserved

    async def _fetch(self, leader: int, node: _NodeLoop, wanted: list[AssignedPartition], *, may_wait: bool) -> bool:
        """One request and its answer; whether the answer had data."""
        connection = await self._cluster.connect(leader, Purpose.FETCH)
        # Positions may have moved while we connected: the request is made of what is true now.
        asked = [
            (state, state.epoch, state.fetch_offset)
            for state in wanted
            if state.position != NO_POSITION and self.states.get(state.topic_partition) is state
        ]
        if not asked:
            return False
        limit = max(1, min(self._config.max_bytes, self._free_bytes()))
        if wanted[0].fetch_bytes > self._config.max_partition_bytes:
            limit = max(limit, wanted[0].fetch_bytes)  # its next batch is known not to fit into less
        topics: dict[str, list[FetchPartition]] = {}
        for state, _, offset in asked:
            topic, partition = state.topic_partition
            topics.setdefault(topic, []).append(FetchPartition(partition, offset, state.fetch_bytes))
        request = FetchRequest(
            self._config.max_wait_ms if may_wait else 0,
            self._config.min_bytes if may_wait else 1,
            limit,
            self._isolation,
            [FetchTopic(name, partitions) for name, partitions in topics.items()],
        )
        node.interrupted = False
        node.reserved_bytes = limit
        node.waiting_on = connection
        for state, _, _ in asked:
            state.in_request = True
        try:
            response: FetchResponse = await connection.request(
                ApiKey.FETCH, request, timeout_ms=self._config.request_timeout_ms + request.max_wait_ms
            )
        finally:
            node.waiting_on = None
            node.reserved_bytes = 0
            for state, _, _ in asked:
                state.in_request = False
        return self._take_in(asked, response)

    async def _pause_before_probe(self, node: _NodeLoop) -> None:
        try:
            async with asyncio.timeout(PROBE_INTERVAL_S):
                await node.wake.wait()
        except TimeoutError:
            pass  # nobody needed us: ask again for those without data

    # answers

    def _take_in(self, asked: list[tuple[AssignedPartition, int, int]], response: FetchResponse) -> bool:
        results = {
            TopicPartition(topic.name, result.partition): result
            for topic in response.topics
            for result in topic.partitions
        }
        self._answers += 1
        size = sum(result.records.size for result in results.values() if result.records is not None)
        frame = FetchedFrame(size, 1)  # one held by this function, so that it is not given back half way
        self.buffered_bytes += size
        for state, epoch, offset in asked:
            result = results.get(state.topic_partition)
            if state.epoch != epoch or self.states.get(state.topic_partition) is not state:
                continue  # sought or no more assigned
            if result is None:
                reason = "the broker left it out of its answer"
                self.fail(
                    state, RefusedError.of_partition(state.topic_partition, ErrorCode.UNKNOWN_SERVER_ERROR, reason)
                )
            elif result.error is not ErrorCode.NONE:
                self._partition_failed(state, offset, result)
            else:
                self._partition_answered(state, result, frame)
        frame.slices -= 1
        if frame.slices == 0:
            self.buffered_bytes -= size
        return size > 0

    def _partition_answered(self, state: AssignedPartition, result: FetchPartitionResult, frame: FetchedFrame) -> None:
        state.failing_since = None
        state.failures = 0
        state.high_watermark = result.high_watermark
        if result.records is None:
            return
        data: memoryview = result.records.data  # type: ignore[attr-defined]  # FetchedRecords, made by the codec
        try:
            next_offset, whole_bytes = end_of_whole_batches(data, state.fetch_offset)
        except DecodeError as error:
            self.fail(state, CorruptBatchError(state.topic_partition, state.fetch_offset, -1, str(error)))
            return
        if whole_bytes == 0:
            self._ask_for_more(state, data)
            return
        state.fetch_bytes = self._config.max_partition_bytes
        state.served = self._answers
        frame.slices += 1
        state.slices.append(
            FetchedSlice(state.topic_partition, data[:whole_bytes], frame, result.aborted, self._config)
        )
        state.fetch_offset = max(next_offset, state.fetch_offset)
        self._announce(state)

    def _ask_for_more(self, state: AssignedPartition, data: memoryview) -> None:
        """The answer had room for a part of the next batch only."""
        most = self._config.max_frame_bytes - FRAME_HEADROOM_BYTES
        needed = size_of_partial_batch(data)
        if needed > most:
            self.fail(
                state,
                CorruptBatchError(
                    state.topic_partition,
                    state.fetch_offset,
                    -1,
                    f"it has {needed} bytes, more than max_frame_bytes={self._config.max_frame_bytes} lets through",
                ),
            )
            return
        state.fetch_bytes = min(most, max(needed, 2 * state.fetch_bytes))

    def _partition_failed(self, state: AssignedPartition, offset: int, result: FetchPartitionResult) -> None:
        code = result.error
        topic_partition = state.topic_partition
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._out_of_range(state, offset, result)
        elif code in RETRIABLE_CODES:
            self._cluster.refresh_soon()
            self._failed_again(state, RefusedError.of_partition(topic_partition, code, None))
        else:
            self.fail(state, RefusedError.of_partition(topic_partition, code, None))

    def _out_of_range(self, state: AssignedPartition, offset: int, result: FetchPartitionResult) -> None:
        if state.has_data:
            state.held = True  # first hand out what is there; the question is asked again then
            return
        if reset_timestamp(self._config) is None:
            high_watermark = max(result.high_watermark, state.high_watermark)  # brokers may leave it out of an error
            error = OffsetOutOfRangeError(state.topic_partition, offset, result.log_start_offset, high_watermark)
            self.fail(state, error)
            return
        logger.warning(
            "%s: offset %d is outside of the log's range %d..%d, going to the %s as offset_reset says",
            state.topic_partition,
            offset,
            result.log_start_offset,
            result.high_watermark,
            self._config.offset_reset,
        )
        state.move_to(NO_POSITION)
        self._resetter.reset_soon()

    def _all_failed(self, states: list[AssignedPartition], error: ClientError) -> None:
        for state in states:
            if isinstance(error, ProtocolViolationError) or (isinstance(error, RefusedError) and not error.retriable):
                self.fail(state, error)
            else:
                self._failed_again(state, error, hold=False)

    def _failed_again(self, state: AssignedPartition, error: ClientError, *, hold: bool = True) -> None:
        """Try again, after a pause of this partition alone if `hold`, until patience is over."""
        final = note_failure(state, error, self._loop.time(), self._config)
        if final is not None:
            self.fail(state, final)
        elif hold:
            state.held = True
            pause = backoff_s(state.failures, self._config.retry_backoff_ms, self._config.retry_backoff_max_ms)
            self._loop.call_later(pause, self._unhold, state, state.epoch)

    def _unhold(self, state: AssignedPartition, epoch: int) -> None:
        if state.epoch == epoch:
            state.held = False
            self.changed()

    def _look_for_leaders(self) -> None:
        """Partitions whose leader is not known: refresh, then look again; their patience runs meanwhile."""
        for state in self.states.values():
            if state.position != NO_POSITION and self._cluster.leader(state.topic_partition) == NO_LEADER:
                code = self._cluster.topic_error(state.topic_partition.topic) or ErrorCode.LEADER_NOT_AVAILABLE
                self._failed_again(state, RefusedError.of_partition(state.topic_partition, code, None), hold=False)
        if not self._looking_for_leaders:
            self._looking_for_leaders = True
            self._cluster.refresh_soon().add_done_callback(self._looked_for_leaders)

    def _looked_for_leaders(self, refresh: asyncio.Task[None]) -> None:
        self._looking_for_leaders = False
        self.changed()

    def fail(self, state: AssignedPartition, error: ClientError) -> None:
        """Let the next poll raise it. The partition rests until then."""
        state.error = error
        state.failing_since = None
        state.failures = 0
        self._announce(state)

    def _announce(self, state: AssignedPartition) -> None:
        if not state.queued:
            state.queued = True
            self.ready.append(state)
        self.arrived.set()
