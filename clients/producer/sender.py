"""Sends the partitions' batches to the brokers and resolves the records' futures with the results.

`_drain` is a plain function that runs after a change (a batch is full, has lingered long enough or was answered, a
broker was connected, a pause ended): it checks the queues that may have a batch to send and writes one request per
broker with every batch that is due. It never waits; connecting and refreshing metadata are tasks that mark their queues
again when they end. So there is no sending task, and an idle producer costs nothing.

After a lost connection, a timeout or a retriable code, a batch stays at the head of its queue and is sent again after a
pause, until delivery_timeout_ms is over or `retries` are used up. After a lost connection the batch may have been
stored: with idempotence (idempotence.py) the broker recognises the repeated batch; without, it may be stored twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from barnabas.clients.config import ProducerConfig
from barnabas.clients.errors import (
    ClientError,
    ClosedError,
    RecordTooLargeError,
    RefusedError,
    TransactionAbortedError,
)
from barnabas.clients.network.backoff import backoff_s
from barnabas.clients.network.cluster import NO_LEADER, Cluster
from barnabas.clients.network.connection import Connection
from barnabas.clients.producer.batch import PartitionQueue, ProducerBatch
from barnabas.clients.producer.batch_split import split_batch
from barnabas.clients.producer.delivery_failures import STALE_METADATA_CODES, gave_up, may_pass
from barnabas.clients.producer.idempotence import Idempotence
from barnabas.clients.producer.memory_limit import MemoryLimit
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.produce import (
    ACKS_NONE,
    ProducePartition,
    ProducePartitionResult,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
)

logger = logging.getLogger(__name__)

_EXPIRY_CHECKS = 20
"""Number of checks for overdue batches per delivery_timeout_ms; at least one per second."""

_WITHOUT_ANSWER = ProducePartitionResult(-1)
"""The result with acks=0: no offset, no timestamp."""


@dataclass(slots=True)
class _Outgoing:
    """A produce request that is being put together."""

    leader: int
    connection: Connection
    batches: list[ProducerBatch]
    size_bytes: int


class Sender:
    """Owned by one producer. `mark` a queue when it may have a batch to send."""

    def __init__(
        self, cluster: Cluster, config: ProducerConfig, memory: MemoryLimit, idempotence: Idempotence | None
    ) -> None:
        self.delivered_records = 0
        self.failed_records = 0
        self._cluster = cluster
        self._config = config
        self._memory = memory
        self._loop = asyncio.get_running_loop()
        self._marked: dict[PartitionQueue, None] = {}  # queues to check, in order
        self._drain_scheduled = False
        self._requests_in_flight: Counter[int] = Counter()  # by leader
        self._incomplete: dict[ProducerBatch, None] = {}  # in order of creation
        self._parked: dict[int, list[PartitionQueue]] = {}  # by the node whose connection they wait for
        self._idempotence = idempotence
        self._unready: list[PartitionQueue] = []  # queues that wait for a producer id, or to be added to a transaction
        self._getting_ready: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._hurrying = 0
        self._expiry_timer: asyncio.TimerHandle | None = None
        self._expiry_interval_s = min(1.0, config.delivery_timeout_ms / 1000 / _EXPIRY_CHECKS)

    # called by the producer

    def opened(self, batch: ProducerBatch) -> None:
        """Append a new batch to its queue."""
        self._incomplete[batch] = None
        batch.queue.batches.append(batch)
        if batch.linger:
            self._loop.call_later(self._config.linger_ms / 1000, self._lingered, batch)
        else:
            self.mark(batch.queue)
        if self._expiry_timer is None:
            self._expiry_timer = self._loop.call_later(self._expiry_interval_s, self._expire)

    def mark(self, queue: PartitionQueue) -> None:
        """Check this queue soon."""
        self._marked[queue] = None
        self._schedule_drain()

    def mark_all(self) -> None:
        """Check every queue with a batch soon."""
        for batch in self._incomplete:
            self._marked[batch.queue] = None
        self._schedule_drain()

    async def flush(self) -> None:
        """Wait until every current batch is delivered or has failed; nothing lingers meanwhile."""
        self._hurrying += 1
        try:
            self.mark_all()
            for batch in list(self._incomplete):
                await batch.wait()
        finally:
            self._hurrying -= 1

    def fail_unsent(self, error: ClientError) -> None:
        """Fail every batch that is not in flight at this moment, also those that wait for another attempt."""
        for batch in list(self._incomplete):
            if not (batch.queue.in_flight and batch is batch.queue.batches[0]):
                self._fail(batch, error)

    async def settled(self) -> None:
        """Wait until no request that makes queues ready is in flight."""
        if self._getting_ready is not None:
            await asyncio.wait([self._getting_ready])

    async def close(self) -> None:
        """Fail the remaining batches. The cluster closes the connections after this."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for batch in list(self._incomplete):
            self._fail(batch, ClosedError(f"{batch.queue.topic_partition}: the producer was closed before delivery"))
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()

    # sending

    def _lingered(self, batch: ProducerBatch) -> None:
        batch.linger = False
        self.mark(batch.queue)

    def _resume(self, queue: PartitionQueue) -> None:
        queue.paused = False
        self.mark(queue)

    def _schedule_drain(self) -> None:
        if not self._drain_scheduled:
            self._drain_scheduled = True
            self._loop.call_soon(self._drain)

    def _drain(self) -> None:
        """Send every batch that is due and whose broker is connected."""
        self._drain_scheduled = False
        failure = None if self._idempotence is None else self._idempotence.failure
        hurry = self._hurrying > 0 or self._memory.has_waiters or failure is not None
        outgoing: dict[int, _Outgoing] = {}
        for queue in list(self._marked):
            if not self._is_due(queue, hurry):
                del self._marked[queue]
                continue
            if failure is not None:
                for unsent in list(queue.batches):
                    self._fail(unsent, failure)
                self._marked.pop(queue, None)
                continue
            leader = self._cluster.leader(queue.topic_partition)
            connection = None if leader == NO_LEADER else self._cluster.connections.connected(leader)
            if connection is None:
                del self._marked[queue]
                self._park(queue, leader)
                continue
            if self._idempotence is not None and not self._idempotence.is_ready(queue):
                del self._marked[queue]
                self._make_ready(queue)
                continue
            if not connection.writable or self._requests_in_flight[leader] >= self._config.max_in_flight:
                continue  # stays marked: a response or room in the socket drains again
            batch = queue.batches[0]
            if not self._encode(batch):
                continue
            del self._marked[queue]
            request = outgoing.setdefault(leader, _Outgoing(leader, connection, [], 0))
            assert batch.data is not None
            if request.batches and request.size_bytes + len(batch.data) > self._config.max_request_bytes:
                self._send(request)
                request = outgoing[leader] = _Outgoing(leader, connection, [], 0)
            request.batches.append(batch)
            request.size_bytes += len(batch.data)
            queue.in_flight = True
        for request in outgoing.values():
            self._send(request)

    def _is_due(self, queue: PartitionQueue, hurry: bool) -> bool:
        if queue.in_flight or queue.paused or not queue.batches:
            return False
        head = queue.batches[0]
        return head.closed or hurry or not head.linger

    def _encode(self, batch: ProducerBatch) -> bool:
        """Encode the batch. Fails it, and returns False, if that is impossible; other batches are not affected."""
        try:
            if self._idempotence is not None:
                self._idempotence.stamp(batch)
            batch.encode()
        except (ValueError, TypeError, OverflowError, MemoryError) as error:
            self._fail(batch, error)
            return False
        return True

    def _send(self, request: _Outgoing) -> None:
        topics: dict[str, list[ProducePartition]] = {}
        for batch in request.batches:
            topic, partition = batch.queue.topic_partition
            assert batch.data is not None
            topics.setdefault(topic, []).append(ProducePartition(partition, memoryview(batch.data)))
        produce = ProduceRequest(
            acks=self._config.acks,
            timeout_ms=self._config.request_timeout_ms,
            topics=[ProduceTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
            transactional_id=self._config.transactional_id,
        )
        connection = request.connection
        connection.on_writable = self._schedule_drain
        try:
            if self._config.acks == ACKS_NONE:
                connection.send_without_answer(produce)
            else:
                highest = None if self._idempotence is None else self._idempotence.highest_produce
                answer = connection.request(produce, highest=highest)
                answer.add_done_callback(partial(self._answered, request))
                self._requests_in_flight[request.leader] += 1
                return
        except ClientError as error:
            self._not_answered(request.batches, error)
            return
        for batch in request.batches:
            self._landed(batch)
            self._deliver(batch, _WITHOUT_ANSWER)

    def _park(self, queue: PartitionQueue, leader: int) -> None:
        """Make the queue wait until its leader is known and connected."""
        if leader == NO_LEADER:
            code = self._cluster.topic_error(queue.topic_partition.topic) or ErrorCode.LEADER_NOT_AVAILABLE
            queue.batches[0].last_error = RefusedError.of_partition(queue.topic_partition, code, None)
            self._cluster.refresh_soon().add_done_callback(lambda done: self.mark(queue))
            return
        line = self._parked.get(leader)
        if line is not None:
            line.append(queue)
            return
        self._parked[leader] = [queue]
        self._start_task(self._connect(leader), f"barnabas-producer-connect-{leader}")

    async def _connect(self, leader: int) -> None:
        try:
            await self._cluster.connections.connect(leader)
        except ClientError as error:
            logger.info("broker %d not connected, its batches will be retried: %s", leader, error)
            for queue in self._parked[leader]:
                if queue.batches:
                    queue.batches[0].last_error = error
            await self._cluster.refresh_soon()  # another broker may lead by now
        finally:
            for queue in self._parked.pop(leader):
                self.mark(queue)

    def _make_ready(self, queue: PartitionQueue) -> None:
        """Make the queue wait until it may send; one task sees to all queues that wait when it begins."""
        self._unready.append(queue)
        if len(self._unready) == 1:
            self._getting_ready = self._start_task(self._get_ready(), "barnabas-producer-ready")

    async def _get_ready(self) -> None:
        assert self._idempotence is not None
        failure: ClientError | None = None
        try:
            await self._idempotence.make_ready(list(self._unready))
        except ClientError as error:
            failure = error
        finally:
            waiting, self._unready = self._unready, []
            for queue in waiting:
                self.mark(queue)
        if failure is None:
            return
        if may_pass(failure):
            logger.info("not ready to send yet, will be retried: %s", failure)
        for queue in waiting:
            for batch in list(queue.batches):
                batch.last_error = failure
                if not may_pass(failure):
                    self._fail(batch, failure)

    def _start_task(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # responses

    def _answered(self, request: _Outgoing, answer: asyncio.Future[ProduceResponse]) -> None:
        self._requests_in_flight[request.leader] -= 1
        error = answer.exception()
        if error is not None:
            self._not_answered(request.batches, error)
            return
        results = {
            (topic.name, result.partition): result for topic in answer.result().topics for result in topic.partitions
        }
        for batch in request.batches:
            topic_partition = batch.queue.topic_partition
            result = results.get(topic_partition)
            self._landed(batch)
            if result is None:
                reason = "the broker left it out of its answer"
                self._fail(batch, RefusedError.of_partition(topic_partition, ErrorCode.UNKNOWN_SERVER_ERROR, reason))
            elif result.error is ErrorCode.NONE:
                self._deliver(batch, result)
            else:
                self._refused(batch, RefusedError.of_partition(topic_partition, result.error, result.message))

    def _not_answered(self, batches: list[ProducerBatch], error: BaseException) -> None:
        """Retry or fail the batches of a request that failed as a whole: none is known to be stored."""
        retriable = may_pass(error)
        for batch in batches:
            self._landed(batch)
            if isinstance(error, RefusedError):
                topic_partition = batch.queue.topic_partition
                self._refused(batch, RefusedError.of_partition(topic_partition, error.code, error.message))
            elif retriable:
                self._retry(batch, error)
            else:
                self._fail(batch, error)

    def _landed(self, batch: ProducerBatch) -> None:
        """Let the batch's queue send again after the batch's request has ended."""
        batch.queue.in_flight = False
        self.mark(batch.queue)

    def _refused(self, batch: ProducerBatch, error: RefusedError) -> None:
        if error.code in STALE_METADATA_CODES:
            self._cluster.refresh_soon()
        if batch.done:
            return
        # The second: above segment.bytes. As in Kafka, the client is told so for a single record.
        if error.code is ErrorCode.MESSAGE_TOO_LARGE or (
            error.code is ErrorCode.RECORD_LIST_TOO_LARGE and len(batch) > 1
        ):
            self._too_large(batch, error)
        elif self._idempotence is not None and error.code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            self._deliver(batch, _WITHOUT_ANSWER)  # stored; the broker no longer knows the offset
        elif error.retriable or (self._idempotence is not None and self._idempotence.mends(batch, error)):
            self._retry(batch, error)
        else:
            self._fail(batch, error)

    def _too_large(self, batch: ProducerBatch, error: RefusedError) -> None:
        """Split a batch that is larger than the topic allows, and send the halves. Fails a single record."""
        if len(batch) == 1:
            topic, partition = batch.queue.topic_partition
            self._fail(batch, RecordTooLargeError(topic, partition, error.message))
            return
        halves = split_batch(batch)
        if self._idempotence is not None:
            self._idempotence.to_be_split(batch)
        queue = batch.queue
        position = queue.batches.index(batch)
        queue.batches.remove(batch)
        del self._incomplete[batch]
        for step, half in enumerate(halves):
            queue.batches.insert(position + step, half)
            self._incomplete[half] = None
        batch.superseded_by(halves)
        self.mark(queue)

    def _retry(self, batch: ProducerBatch, error: BaseException) -> None:
        if batch.done:
            return
        failure = None if self._idempotence is None else self._idempotence.failure
        if failure is not None:
            self._fail(batch, failure)
            return
        batch.attempts += 1
        batch.last_error = error
        if batch.attempts > self._config.retries or self._loop.time() >= batch.deadline:
            self._fail(batch, gave_up(batch, self._config))
            return
        pause = backoff_s(batch.attempts, self._config.retry_backoff_ms, self._config.retry_backoff_max_ms)
        queue = batch.queue
        logger.info("%s: sending %d records again in %.3f s: %s", queue.topic_partition, len(batch), pause, error)
        queue.paused = True
        self._loop.call_later(pause, self._resume, queue)

    # results

    def _deliver(self, batch: ProducerBatch, result: ProducePartitionResult) -> None:
        if batch.done:  # it was overdue, and its futures have failed
            return
        self._remove(batch)
        self.delivered_records += len(batch)
        batch.deliver(result)

    def _fail(self, batch: ProducerBatch, error: BaseException) -> None:
        if batch.done:
            return
        self._remove(batch)
        if self._idempotence is not None:
            self._idempotence.given_up(batch, error)
            if self._idempotence.failure is not None:
                self.mark_all()  # the other batches of the transaction fail, too
        self.failed_records += len(batch)
        level = logging.INFO if isinstance(error, TransactionAbortedError) else logging.ERROR
        logger.log(level, "%d records for %s were not delivered: %s", len(batch), batch.queue.topic_partition, error)
        batch.fail(error)
        if batch.queue.batches:
            self.mark(batch.queue)

    def _remove(self, batch: ProducerBatch) -> None:
        batch.queue.batches.remove(batch)  # the first one, unless a waiting batch is overdue
        del self._incomplete[batch]
        self._memory.release(batch.reserved_bytes)

    def _expire(self) -> None:
        """Fail overdue batches, and check again later while there are any batches."""
        now = self._loop.time()
        overdue: Iterable[ProducerBatch] = [batch for batch in self._incomplete if batch.deadline <= now]
        for batch in overdue:
            self._fail(batch, gave_up(batch, self._config))
        self._expiry_timer = None
        if self._incomplete:
            self._expiry_timer = self._loop.call_later(self._expiry_interval_s, self._expire)
