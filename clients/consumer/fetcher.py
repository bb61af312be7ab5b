"""Prefetching of a consumer's partitions within memory bounds: one loop and one connection per leading broker.

A partition is fetched while less than max_partition_bytes of it are buffered and all partitions together are below
prefetch_bytes. A response's memory counts as a whole until the last of its partitions has been read, so the bound holds
for the memory really in use. One response may exceed it, when a single batch is larger than the requested bytes.

Fair: within a request the partition that waited longest for data comes first, because the broker fills its response in
that order.

Fetches wait at the broker for data. A fetch that leaves out partitions because enough of them is buffered must not
wait: they will need fetching in a moment, and the connection would be busy. A waiting fetch that a seek makes pointless
is cut off together with its connection: the records after the seek would otherwise come up to max_wait_ms late.
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
    reason_of,
)
from barnabas.clients.network.backoff import backoff_s
from barnabas.clients.network.cluster import NO_LEADER, Cluster
from barnabas.clients.network.connection import Connection
from barnabas.clients.network.node_connections import Purpose
from barnabas.clients.offsets import log_range
from barnabas.protocol.errors import RETRIABLE_CODES, DecodeError, ErrorCode
from barnabas.protocol.messages.data.fetch import (
    TOPIC_IDS_FROM,
    FetchPartition,
    FetchPartitionResult,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from barnabas.protocol.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

PROBE_INTERVAL_S = 0.05
"""How often partitions without data are fetched while other partitions of the broker have enough buffered."""

FRAME_HEADROOM_BYTES = 64 * 1024
"""Part of max_frame_bytes reserved for a response's header."""


class _NodeLoop:
    """The fetch loop of one leader: its task, the event that wakes it, and the connection of its current request."""

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.wake = asyncio.Event()
        self.waiting_on: Connection | None = None
        self.interrupted = False
        self.reserved_bytes = 0


class Fetcher:
    """Owned by one consumer's RecordQueue, which changes `states` and calls `changed`."""

    def __init__(self, cluster: Cluster, config: ConsumerConfig) -> None:
        self.states: dict[TopicPartition, AssignedPartition] = {}
        self.arrived = asyncio.Event()
        """Set when a partition gets data or an error."""
        self.ready: list[AssignedPartition] = []
        """Partitions that got data or an error since the consumer last took this list, in that order."""
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
        self._asking: set[asyncio.Task[None]] = set()  # for the ranges of logs that fetches were outside of

    # called by the consumer

    def changed(self) -> None:
        """Check all partitions: some may have a new position, a new leader, or room again."""
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
        """Cut off a waiting fetch that was sent without this partition, or with an offset that no longer applies."""
        node = self._nodes.get(self._cluster.leader(topic_partition))
        if node is not None and node.waiting_on is not None:
            node.interrupted = True
            node.waiting_on.close(ClosedError("the fetch was given up for another one"))

    def is_full(self, state: AssignedPartition) -> bool:
        """Whether enough of this partition is buffered."""
        return state.buffered_bytes >= self._config.max_partition_bytes

    def consumed(self, state: AssignedPartition, *, was_full: bool) -> None:
        """Fetch on after a batch was decoded, if that made room that was missing."""
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
        """End the loops. The cluster closes the connections."""
        self._closed = True
        tasks = [node.task for node in self._nodes.values() if node.task is not None]
        if self._resetter.task is not None:
            tasks.append(self._resetter.task)
        tasks.extend(self._asking)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def ended(self, task: asyncio.Task[None]) -> None:
        """Report a task that failed by a bug to the reader, which would otherwise wait forever."""
        if task.cancelled() or task.exception() is None:
            return
        error = task.exception()
        logger.error("%s ended by an internal error", task.get_name(), exc_info=error)
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
                connection = await self._cluster.connections.connect(leader, Purpose.FETCH)
                if node.wake.is_set():  # something changed while this connected, and no fetch was there to cut off
                    wanted, others_full = self._wanted(leader)
                got_data = await self._fetch(connection, node, wanted, may_wait=not others_full)
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
        """Return this leader's partitions to fetch, and whether others were left out because enough is buffered."""
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
                continue  # in_request: at the broker that was the leader before
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

    async def _fetch(
        self, connection: Connection, node: _NodeLoop, wanted: list[AssignedPartition], *, may_wait: bool
    ) -> bool:
        """Send one request and take in its response. Returns whether it had data."""
        # Positions may have moved while the caller connected: build the request from the current ones.
        requested = [
            (state, state.epoch, state.fetch_offset)
            for state in wanted
            if state.position != NO_POSITION and self.states.get(state.topic_partition) is state
        ]
        if not requested:
            return False
        limit = max(1, min(self._config.max_bytes, self._free_bytes()))
        if wanted[0].fetch_bytes > self._config.max_partition_bytes:
            limit = max(limit, wanted[0].fetch_bytes)  # its next batch does not fit into less
        topics: dict[str, list[FetchPartition]] = {}
        for state, _, offset in requested:
            topic, partition = state.topic_partition
            topics.setdefault(topic, []).append(
                FetchPartition(partition=partition, offset=offset, max_bytes=state.fetch_bytes)
            )
        request = FetchRequest(
            max_wait_ms=self._config.max_wait_ms if may_wait else 0,
            min_bytes=self._config.min_bytes if may_wait else 1,
            max_bytes=limit,
            isolation=self._isolation,
            topics=[FetchTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
        )
        node.interrupted = False
        node.reserved_bytes = limit
        node.waiting_on = connection
        for state, _, _ in requested:
            state.in_request = True
        try:
            response: FetchResponse = await connection.request(
                request,
                highest=TOPIC_IDS_FROM - 1,
                timeout_ms=self._config.request_timeout_ms + request.max_wait_ms,
            )
        finally:
            node.waiting_on = None
            node.reserved_bytes = 0
            for state, _, _ in requested:
                state.in_request = False
        if response.error is not ErrorCode.NONE:
            raise RefusedError(response.error, f"fetch: {reason_of(response.error)}")
        return self._take_in(requested, response)

    async def _pause_before_probe(self, node: _NodeLoop) -> None:
        try:
            async with asyncio.timeout(PROBE_INTERVAL_S):
                await node.wake.wait()
        except TimeoutError:
            pass  # fetch the partitions without data again

    # responses

    def _take_in(self, requested: list[tuple[AssignedPartition, int, int]], response: FetchResponse) -> bool:
        results = {
            TopicPartition(topic.name, result.partition): result
            for topic in response.topics
            for result in topic.partitions
        }
        self._answers += 1
        size = sum(len(result.data) for result in results.values())
        frame = FetchedFrame(size, 1)  # held by this function, so that it is not released half way
        self.buffered_bytes += size
        for state, epoch, offset in requested:
            result = results.get(state.topic_partition)
            if state.epoch != epoch or self.states.get(state.topic_partition) is not state:
                continue  # sought, or no longer assigned
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
        data = result.data
        if not data:
            return
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
            FetchedSlice(state.topic_partition, data[:whole_bytes], frame, result.aborted or (), self._config)
        )
        state.fetch_offset = max(next_offset, state.fetch_offset)
        self._announce(state)

    def _ask_for_more(self, state: AssignedPartition, data: memoryview) -> None:
        """Raise the partition's fetch size after a response that had room for only part of its next batch."""
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
            self._out_of_range(state, offset)
        elif code in RETRIABLE_CODES:
            self._cluster.refresh_soon()
            self._failed_again(state, RefusedError.of_partition(topic_partition, code, None))
        else:
            self.fail(state, RefusedError.of_partition(topic_partition, code, None))

    def _out_of_range(self, state: AssignedPartition, offset: int) -> None:
        if state.has_data:
            state.held = True  # hand out the buffered records first, and fetch again then
            return
        if reset_timestamp(self._config) is None:
            state.held = True
            task = asyncio.create_task(self._tell_range(state, state.epoch, offset), name="barnabas-log-range")
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)
            task.add_done_callback(self.ended)
            return
        logger.warning(
            "%s: offset %d is outside of the log, resetting to offset_reset=%s",
            state.topic_partition,
            offset,
            self._config.offset_reset,
        )
        state.move_to(NO_POSITION)
        self._resetter.reset_soon()

    async def _tell_range(self, state: AssignedPartition, epoch: int, offset: int) -> None:
        """Fail a partition that was fetched outside of its log, with the log's range, which fetches do not tell."""
        try:
            first, end = await log_range(self._cluster, self._config, state.topic_partition)
        except ClientError as error:
            logger.debug("the range of %s is not known: %s", state.topic_partition, error)
            first, end = -1, state.high_watermark
        if state.epoch == epoch and self.states.get(state.topic_partition) is state:  # else sought meanwhile
            state.held = False
            self.fail(state, OffsetOutOfRangeError(state.topic_partition, offset, first, end))

    def _all_failed(self, states: list[AssignedPartition], error: ClientError) -> None:
        for state in states:
            if isinstance(error, ProtocolViolationError) or (isinstance(error, RefusedError) and not error.retriable):
                self.fail(state, error)
            else:
                self._failed_again(state, error, hold=False)

    def _failed_again(self, state: AssignedPartition, error: ClientError, *, hold: bool = True) -> None:
        """Retry until api_timeout_ms is over; with `hold`, after a pause of this partition alone."""
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
        """Refresh the metadata for partitions without a known leader. That counts as a failure of theirs."""
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
        """Let the next read raise the error. The partition is not fetched until then."""
        state.error = error
        state.failing_since = None
        state.failures = 0
        self._announce(state)

    def _announce(self, state: AssignedPartition) -> None:
        if not state.queued:
            state.queued = True
            self.ready.append(state)
        self.arrived.set()
