"""Producer: sends records in batches and returns a future of each record's offset.

    async with Producer(ProducerConfig(bootstrap="127.0.0.1:9092", compression="zstd")) as producer:
        future = await producer.send("orders", b"value", key=b"key")
        metadata = await future

`send` waits only for metadata of a new topic and for room in the buffer; delivery goes on in the background. Within a
partition records are stored in the order in which their sends returned, and once each, however often a batch is sent
(with enable_idempotence, the default; see idempotence.py). A record whose future failed with a timeout or a lost
connection may be stored or not, but never after later ones. Leaving the context manager delivers buffered records.

With a transactional_id, records are sent in transactions only:

    async with producer.transaction():      # commits at the end, aborts after an exception
        await producer.send("orders", b"value")

Programs that ignore the futures find one ERROR line per batch that was not delivered, and `failed_records`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from barnabas.clients.config import ProducerConfig
from barnabas.clients.errors import (
    BufferFullError,
    ClientConfigError,
    ClientError,
    ClosedError,
    RecordTooLargeError,
    UnknownTopicError,
)
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.producer.batch import PartitionQueue, ProducerBatch
from barnabas.clients.producer.given_identity import GivenIdentity, ProducerIdentity, stored_records
from barnabas.clients.producer.idempotence import Idempotence
from barnabas.clients.producer.memory_limit import MemoryLimit
from barnabas.clients.producer.partitioner import StickyPartition, partition_for_key
from barnabas.clients.producer.prepared import PreparedTransaction
from barnabas.clients.producer.record_size import RECORD_FRAMING_BYTES, HeaderList, fitting_sizes, record_size
from barnabas.clients.producer.sender import Sender
from barnabas.clients.producer.topic_queues import TopicQueues
from barnabas.clients.producer.transactions import TransactionBlock, Transactions
from barnabas.clients.records import RecordMetadata
from barnabas.protocol.compression import Codec
from barnabas.protocol.records.builder import Buffer, RecordBatchBuilder
from barnabas.protocol.records.layout import HEADER_SIZE
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.clients.consumer.consumer import Consumer

RECORD_OVERHEAD_BYTES = 250
"""Memory of a waiting record besides its own bytes: framing, its future, list entries (measured: 230-260)."""
SHARED_OVERHEAD_BYTES = 32
"""The same of a record that shares its future with others."""


def wall_clock_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Producer:
    """Use it as an async context manager, or call `start` and `close`. Not thread-safe.

    `clock` returns the timestamp (ms since 1970) for records sent without one. With `identity` it continues an earlier
    producer (given_identity.py). Raises ClientConfigError for an identity without idempotence.
    """

    def __init__(
        self,
        config: ProducerConfig | None = None,
        *,
        clock: Callable[[], int] = wall_clock_ms,
        identity: ProducerIdentity | None = None,
    ) -> None:
        self.config = config or ProducerConfig()
        self.identity = identity
        if identity is not None and not self.config.idempotent:
            raise ClientConfigError("a producer with an identity needs idempotence: acks=-1 and retries above 0")
        self._clock = clock
        transactional_id = self.config.transactional_id
        if identity is not None and transactional_id is not None:
            raise ClientConfigError("a producer with a transactional_id gets its identity from the broker")
        self._codec = Codec[self.config.compression.upper()]
        self._cluster = Cluster(self.config, may_create_topics=True)
        self._transactions = (
            None if transactional_id is None else Transactions(self._cluster, self.config, transactional_id)
        )
        self._memory = MemoryLimit(self.config.buffer_memory)
        self._sender: Sender | None = None
        self._topics: dict[str, TopicQueues] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing = False
        self._delivery_timeout_s = self.config.delivery_timeout_ms / 1000
        self._lingers = self.config.linger_ms > 0

    async def start(self) -> None:
        """Connect to a broker. Raises BrokerConnectionError immediately when none of the bootstrap list answers.

        With a transactional_id, earlier producers with this id are fenced, and the transaction that one left open is
        aborted. Raises RefusedError, e.g. INVALID_TRANSACTION_TIMEOUT.
        """
        self._loop = asyncio.get_running_loop()
        try:
            await self._cluster.start()
            sender = Sender(self._cluster, self.config, self._memory, self._idempotence())
            if self._transactions is not None:
                await self._transactions.start(sender)
        except BaseException:
            await self._cluster.close()
            raise
        self._sender = sender

    async def close(self, timeout_ms: int | None = None) -> None:
        """Deliver buffered records, then close. An open transaction is aborted instead. Idempotent.

        Records not delivered within `timeout_ms` (default: their delivery_timeout_ms) fail with ClosedError.
        """
        already_closing, self._closing = self._closing, True
        self._memory.fail_waiters(ClosedError("the producer was closed while send() waited for room in its buffer"))
        try:
            if self._sender is not None and not already_closing:
                async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                    if self._transactions is not None:
                        await self._transactions.close()
                    await self._sender.flush()
        except TimeoutError:
            pass  # closing the sender fails the remaining records with ClosedError
        finally:
            if self._sender is not None:
                await self._sender.close()
            await self._cluster.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def cluster_id(self) -> str:
        """The id of the connected cluster; empty before `start`."""
        return self._cluster.cluster_id

    @property
    def delivered_records(self) -> int:
        """Records acknowledged so far (with acks=0: written to the socket)."""
        return 0 if self._sender is None else self._sender.delivered_records

    @property
    def failed_records(self) -> int:
        """Records whose futures have failed so far."""
        return 0 if self._sender is None else self._sender.failed_records

    @property
    def buffered_bytes(self) -> int:
        """Memory of records that wait or are in flight, as buffer_memory counts it."""
        return self._memory.limit - self._memory.available

    async def send(
        self,
        topic: str,
        value: Buffer | None,
        key: Buffer | None = None,
        *,
        headers: HeaderList = (),
        timestamp_ms: int | None = None,
        partition: int | None = None,
    ) -> asyncio.Future[RecordMetadata]:
        """Buffer one record and return the future of its RecordMetadata. `value` None is a tombstone.

        Waits at most max_block_ms for the topic's metadata and for room. The future fails with RefusedError,
        DeliveryTimeoutError or another ClientError that names topic and partition. Raises TypeError if key, value or
        headers are not bytes, RecordTooLargeError, UnknownTopicError, BufferFullError, BrokerConnectionError (without
        metadata). With a transactional_id, raises ClientError outside of a transaction, TransactionAbortableError after
        a failure in it, ProducerFencedError; a record for which `send` has raised is not a part of the transaction.
        """
        loop = self._loop
        sender = self._sender
        if sender is None or loop is None or self._closing:
            raise self._not_open()
        if self._transactions is not None:
            self._transactions.ensure_may_send()
        size = record_size(key, value, headers)
        if size + RECORD_FRAMING_BYTES + HEADER_SIZE > self.config.max_request_bytes:
            raise self._too_large(topic, partition, size, "max_request_bytes", self.config.max_request_bytes)
        size += RECORD_OVERHEAD_BYTES
        view = self._cluster.topic(topic)
        state = self._topics.get(topic)
        if view is None or state is None or state.view is not view:
            state = await self._load(topic)
        if partition is not None and not 0 <= partition < len(state.view.leaders):
            state = await self._look_for_partition(topic, partition)
        if not self._memory.try_take(size):
            await self._wait_for_memory(topic, partition, size)
        # No await from here to the append: it cannot be cancelled half way, and records keep the order of the sends.
        if partition is None:
            if key is not None:
                partition = partition_for_key(key, len(state.view.leaders))
            else:
                partition = state.sticky.choose(size, state.view.leaders)
        queue = state.queues[partition]
        timestamp = self._clock() if timestamp_ms is None else timestamp_ms
        future: asyncio.Future[RecordMetadata] = loop.create_future()
        filled = False
        try:
            if self._transactions is not None:
                self._transactions.ensure_may_send()  # it may have ended while this call waited
            batches = queue.batches
            if batches:
                batch = batches[-1]
                if not batch.closed:
                    if batch.append(timestamp, key, value, headers, future, size):
                        return future
                    batch.closed = filled = True
                    sender.mark(queue)
            batch = self._new_batch(queue, loop)
            batch.append(timestamp, key, value, headers, future, size)
        except BaseException:
            self._memory.release(size)
            raise
        sender.opened(batch)
        if filled:
            await asyncio.sleep(0)  # a loop around send() must let full batches be sent, and other tasks run
        return future

    async def send_values(
        self,
        topic: str,
        values: Sequence[Buffer | None],
        *,
        keys: Sequence[Buffer | None] | None = None,
        headers: HeaderList = (),
        timestamp_ms: int | None = None,
        partition: int | None = None,
    ) -> tuple[int, asyncio.Future[RecordMetadata]]:
        """Buffer the first of `values` as records: those that fit one batch, and at least one.

        `keys` has one for each value; None: the records have no keys. Records with keys need `partition`, the one of
        all their keys (`partition_for_key`). Return how many were taken, and a future for all of them, which gets the
        RecordMetadata of the first one. This costs a fraction of as many calls of `send`. Waits, fails and raises as
        `send` does, for the first value; a later one that is too large is left for the next call. Raises ValueError
        without values, without a partition for keys, and if there are not as many keys.
        """
        loop, sender = self._loop, self._sender
        if sender is None or loop is None or self._closing:
            raise self._not_open()
        if not values:
            raise ValueError("there are no values to send")
        if keys is not None and (partition is None or len(keys) != len(values)):
            raise ValueError("keys need a partition, and one key for each value")
        if self._transactions is not None:
            self._transactions.ensure_may_send()
        config = self.config
        sizes = fitting_sizes(keys, values, headers, config.batch_size)
        if sizes[0] + RECORD_FRAMING_BYTES + HEADER_SIZE > config.max_request_bytes:
            raise self._too_large(topic, partition, sizes[0], "max_request_bytes", config.max_request_bytes)
        size = sizes[-1] + len(sizes) * SHARED_OVERHEAD_BYTES
        fitting = values[: len(sizes)]
        if keys is not None:
            keys = keys[: len(sizes)]
        view = self._cluster.topic(topic)
        state = self._topics.get(topic)
        if view is None or state is None or state.view is not view:
            state = await self._load(topic)
        if partition is not None and not 0 <= partition < len(state.view.leaders):
            state = await self._look_for_partition(topic, partition)
        if not self._memory.try_take(size):
            await self._wait_for_memory(topic, partition, size)
        # No await from here to the append, as in `send`.
        if partition is None:
            partition = state.sticky.choose(size, state.view.leaders)
        queue = state.queues[partition]
        timestamp = self._clock() if timestamp_ms is None else timestamp_ms
        future: asyncio.Future[RecordMetadata] = loop.create_future()
        opened = False
        taken = 0
        try:
            if self._transactions is not None:
                self._transactions.ensure_may_send()  # it may have ended while this call waited
            batch = queue.batches[-1] if queue.batches else None
            if batch is not None and not batch.closed:
                taken = batch.append_values(timestamp, fitting, headers, future, keys)
            if not taken:
                if batch is not None and not batch.closed:
                    batch.closed = True
                    sender.mark(queue)
                batch = self._new_batch(queue, loop)
                opened = True
                taken = batch.append_values(timestamp, fitting, headers, future, keys)
        except BaseException:
            self._memory.release(size)
            raise
        assert batch is not None
        reserved = sizes[taken - 1] + taken * SHARED_OVERHEAD_BYTES
        batch.reserved_bytes += reserved
        if reserved < size:
            self._memory.release(size - reserved)
        if opened:
            sender.opened(batch)
            await asyncio.sleep(0)  # as in `send`
        return taken, future

    async def send_and_wait(
        self,
        topic: str,
        value: Buffer | None,
        key: Buffer | None = None,
        *,
        headers: HeaderList = (),
        timestamp_ms: int | None = None,
        partition: int | None = None,
    ) -> RecordMetadata:
        """Send one record and wait for its delivery. Raises what `send` raises, and the error of its future."""
        return await (
            await self.send(topic, value, key, headers=headers, timestamp_ms=timestamp_ms, partition=partition)
        )

    async def flush(self) -> None:
        """Send buffered records without lingering and wait until each is delivered or has failed (see its future)."""
        if self._sender is None:
            raise self._not_open()
        await self._sender.flush()

    # transactions

    def transaction(self) -> TransactionBlock:
        """Return an `async with` block whose records and offsets become visible together, or never.

        It commits at its end, and aborts after an exception, also CancelledError, which goes on. A failed commit is
        followed by an abort where one is allowed. Raises what `begin_transaction` and `commit_transaction` raise.
        """
        return TransactionBlock(self._transactional())

    async def begin_transaction(self) -> None:
        """Begin a transaction. Raises ClientError if one is open, or without a transactional_id; ProducerFencedError.

        If the answer to the last `abort_transaction` did not arrive, this aborts first.
        """
        await self._transactional().begin()

    async def commit_transaction(self) -> None:
        """Deliver all records and commit the transaction.

        Raises TransactionAbortableError if a record or offset was not accepted: abort it, and begin again.
        Raises ProducerFencedError if another producer has taken the transactional id over or the transaction took
        longer than transaction_timeout_ms. After a BrokerConnectionError, BrokerTimeoutError or cancellation it may be
        committed or not: call this again, which gives the outcome.
        """
        await self._transactional().commit()

    async def abort_transaction(self) -> None:
        """Abort the transaction; unsent records fail with TransactionAbortedError. Raises as `commit_transaction`.

        A consumer whose records were processed in it has moved on: see `Consumer.seek_to_committed`.
        """
        await self._transactional().abort()

    async def prepare_transaction(self) -> PreparedTransaction | None:
        """Deliver all records, and leave the transaction open for a decision by any process: see `prepared`.

        Returns None, and ends the transaction, if nothing was sent in it: the broker does not know it. This producer
        may still commit or abort it; closing the producer does neither. Raises TransactionAbortableError if a record or
        offset was not accepted, and what `begin_transaction` raises.
        """
        return await self._transactional().prepare()

    async def send_offsets_to_transaction(
        self, consumer: Consumer, offsets: Mapping[TopicPartition, int] | None = None
    ) -> dict[TopicPartition, int]:
        """Commit offsets of the consumer's group in the transaction, by default its positions; return them.

        The group's coordinator checks the consumer's membership, so offsets of one that was replaced are refused.
        Raises ClientError if the consumer has no group or commits by itself, CommitFailedError when it is no longer a
        member, RefusedError, and what `send` raises. Any of these after the call to the broker, and partitions that
        the group has taken away since the transaction began, make the transaction abort-only.
        """
        return await self._transactional().send_offsets(consumer, offsets)

    async def resume(self, topic: str) -> None:
        """Query how many of the identity's records the topic's partitions have. Call it before the topic's first send.

        Raises ClientConfigError for another cluster's identity, and as `given_identity.stored_records` does.
        """
        assert self.identity is not None
        if self.identity.cluster_id not in ("", self._cluster.cluster_id):
            raise ClientConfigError(
                f"producer id {self.identity.producer_id} was issued by cluster {self.identity.cluster_id}, "
                f"but {self.config.bootstrap} is cluster {self._cluster.cluster_id}"
            )
        self.identity.note(await stored_records(self._cluster, self.config, topic, self.identity))

    async def partitions_for(self, topic: str) -> int:
        """Number of the topic's partitions. Raises UnknownTopicError."""
        if self._sender is None or self._closing:
            raise self._not_open()
        return len((await self._cluster.require_topic(topic, self.config.max_block_ms)).leaders)

    def _transactional(self) -> Transactions:
        """The transactions of an open producer. Raises ClientError."""
        if self._transactions is None:
            raise ClientError("the producer has no transactions: ProducerConfig(transactional_id=...)")
        if self._sender is None or self._closing:
            raise self._not_open()
        return self._transactions

    def _idempotence(self) -> Idempotence | None:
        if self._transactions is not None:
            return self._transactions.sequences
        if self.identity is not None:
            return GivenIdentity(self._cluster, self.config, self.identity)
        return Idempotence(self._cluster, self.config) if self.config.idempotent else None

    def _new_batch(self, queue: PartitionQueue, loop: asyncio.AbstractEventLoop) -> ProducerBatch:
        builder = RecordBatchBuilder(
            self._codec,
            max_bytes=self.config.batch_size,
            level=self.config.compression_level,
            expected_ratio=queue.ratio.estimate,
            is_transactional=self._transactions is not None,
        )
        return ProducerBatch(queue, builder, self._lingers, loop.time() + self._delivery_timeout_s)

    async def _load(self, topic: str) -> TopicQueues:
        """Return the topic's queues for all partitions of the last metadata."""
        view = await self._cluster.require_topic(topic, self.config.max_block_ms)
        state = self._topics.get(topic)
        if state is None:
            state = self._topics[topic] = TopicQueues(view, StickyPartition(self.config.batch_size))
        state.update(view)
        if self._closing:
            raise self._not_open()
        return state

    async def _look_for_partition(self, topic: str, partition: int) -> TopicQueues:
        """Return the topic's queues, after one metadata request for the missing partition. Raises UnknownTopicError."""
        if partition >= 0:
            await self._cluster.load([topic])
        state = await self._load(topic)
        count = len(state.view.leaders)
        if not 0 <= partition < count:
            raise UnknownTopicError(
                topic, partition, f"{topic}-{partition}: the topic has {count} partitions, 0..{count - 1}"
            )
        return state

    async def _wait_for_memory(self, topic: str, partition: int | None, size: int) -> None:
        if size > self._memory.limit:
            raise self._too_large(topic, partition, size, "buffer_memory", self._memory.limit)
        assert self._sender is not None
        waiting = asyncio.ensure_future(self._memory.take(size, self.config.max_block_ms / 1000))
        self._sender.mark_all()
        try:
            await waiting
        except TimeoutError as error:
            raise BufferFullError(
                f"{topic}: buffer_memory={self._memory.limit} stayed full for max_block_ms={self.config.max_block_ms}: "
                "records are sent faster than the broker takes them, or it does not answer"
            ) from error
        if self._closing:
            self._memory.release(size)
            raise self._not_open()

    def _too_large(self, topic: str, partition: int | None, size: int, limit: str, value: int) -> RecordTooLargeError:
        name = topic if partition is None else f"{topic}-{partition}"
        return RecordTooLargeError(topic, partition, f"{name}: a record of {size} bytes is above {limit}={value}")

    def _not_open(self) -> ClosedError:
        return ClosedError("the producer is closed" if self._closing else "the producer is not started: use async with")
