"""A broker of a few hundred lines that speaks Kafka's protocol over a real loopback socket and keeps logs in memory.

It serves what a client needs, and a test can step in front of any request: `broker.intercept = f`, where
f(api, request) returns None to let it be served, or one of the actions below. `broker.requests` keeps them all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from barnabas.protocol.dialects import EncodedFrame, dialect_of
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.framing import SIZE_PREFIX
from barnabas.protocol.kafka.apis import KAFKA_APIS, OWN_APIS
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.api_versions import (
    ApiVersionRange,
    ApiVersionsResponse,
    FinalizedFeature,
)
from barnabas.protocol.messages.data.fetch import (
    FetchPartition,
    FetchPartitionResult,
    FetchRequest,
    FetchResponse,
    FetchTopicResult,
)
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdResponse
from barnabas.protocol.messages.data.list_offsets import (
    ListOffsetsPartitionResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResult,
)
from barnabas.protocol.messages.data.produce import (
    ProducePartition,
    ProducePartitionResult,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicResult,
)
from barnabas.protocol.messages.groups.find_coordinator import CoordinatorResult, FindCoordinatorResponse
from barnabas.protocol.messages.nodes import BrokerAddress
from barnabas.protocol.messages.topics.metadata import (
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.reader import read_records
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.wire.pieces import RecordBytes
from tests.clients.fake_coordinator import FakeCoordinator


@dataclass(frozen=True)
class Drop:
    """Close the connection without an answer; `serve_first`: carry the request out before."""

    serve_first: bool = False


@dataclass(frozen=True)
class Silence:
    """Never answer this and later requests of the connection."""


@dataclass(frozen=True)
class Refuse:
    """Answer the whole request with an error."""

    code: ErrorCode
    message: str = "as the test says"


@dataclass(frozen=True)
class RefusePartitions:
    """Answer every partition of a produce or fetch with this code, and store nothing."""

    code: ErrorCode
    message: str | None = None


@dataclass(frozen=True)
class Raw:
    """Send these bytes instead of an answer."""

    data: bytes


@dataclass(frozen=True)
class Hold:
    """Serve the request once the event is set; later requests of the connection wait."""

    event: asyncio.Event


@dataclass(frozen=True)
class Respond:
    """Send this response."""

    response: Any


Action = Drop | Silence | Refuse | RefusePartitions | Raw | Hold | Respond


REMEMBERED_BATCHES = 5
SEQUENCE_MASK = 2**31 - 1


@dataclass
class FakeProducerState:
    """State of one producer id in a log: its epoch and its last batches as (first, last sequence, base offset)."""

    epoch: int
    batches: list[tuple[int, int, int]] = field(default_factory=list)

    def check(self, batch: RecordBatch) -> ErrorCode | int | None:
        """A refusal, the base offset of the batch that this one repeats, or None for a batch that may be stored."""
        if batch.producer_epoch < self.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        expected = 0
        if batch.producer_epoch == self.epoch:
            for first, last, offset in self.batches:
                if (first, last) == (batch.base_sequence, batch.last_sequence):
                    return offset
            expected = (self.batches[-1][1] + 1) & SEQUENCE_MASK
        return None if batch.base_sequence == expected else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def note(self, batch: RecordBatch, base_offset: int) -> None:
        """Note a stored batch."""
        if batch.producer_epoch != self.epoch:
            self.epoch = batch.producer_epoch
            self.batches = []
        self.batches.append((batch.base_sequence, batch.last_sequence, base_offset))
        del self.batches[:-REMEMBERED_BATCHES]


@dataclass
class FakeLog:
    """One partition: whole batches with their offsets in them."""

    batches: list[bytes] = field(default_factory=list)
    start_offset: int = 0
    end_offset: int = 0
    producers: dict[int, FakeProducerState] = field(default_factory=dict)

    def append(self, batch: bytes, *, at: int | None = None) -> int:
        """Store a batch as a leader does; `at` leaves a gap before it. Returns its base offset."""
        stored = bytearray(batch)
        view = RecordBatch(stored)
        base_offset = self.end_offset if at is None else at
        view.stamp_offset_and_epoch(base_offset, 0)
        self.end_offset = view.next_offset
        self.batches.append(bytes(stored))
        return base_offset

    def records(self) -> list[Any]:
        """Everything stored."""
        return [record for batch in self.batches for record in read_records(RecordBatch(batch))]

    def values(self) -> list[bytes | None]:
        """The values of everything stored."""
        return [record.value for record in self.records()]


class FakeBroker:
    """Use it as an async context manager."""

    def __init__(self, node_id: int = 1, *, peers: list[FakeBroker] | None = None) -> None:
        self.node_id = node_id
        self.host = "127.0.0.1"
        self.port = 0
        self.peers = [self] if peers is None else peers
        self.topics: dict[str, int] = {}
        self.leaders: dict[TopicPartition, int] = {}
        self.logs: dict[TopicPartition, FakeLog] = {}
        self.requests: list[tuple[ApiKey, Any]] = []
        self.intercept: Callable[[ApiKey, Any], Action | None] = lambda api, request: None
        self.create_missing_topics = False
        self.next_producer_id = 1000
        self.coordinator = FakeCoordinator()
        self.apis = {int(each.key): (each.lowest, each.highest) for each in (*KAFKA_APIS, *OWN_APIS)}
        self.advertised: tuple[str, int] | None = None
        self.connections_made = 0
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    def create(self, topic: str, partitions: int = 1) -> None:
        """Create a topic led by this node."""
        self.topics[topic] = partitions
        for partition in range(partitions):
            self.logs.setdefault(TopicPartition(topic, partition), FakeLog())
            self.leaders.setdefault(TopicPartition(topic, partition), self.node_id)

    def log(self, topic: str, partition: int = 0) -> FakeLog:
        return self.logs[TopicPartition(topic, partition)]

    def asked(self, api: ApiKey) -> list[Any]:
        """The requests of one API, in order."""
        return [request for asked, request in self.requests if asked is api]

    def appended(self) -> None:
        """Wake waiting fetches after a test appended to a log by hand."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def start(self) -> None:
        """Listen, on the same port as before if there was one."""
        self._server = await asyncio.start_server(self._connected, self.host, self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening and drop every connection."""
        if self._server is not None:
            self._server.close()
        self.drop_connections()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()
            self._server = None
        await asyncio.sleep(0)  # aborted transports close their sockets in the loop's next turn

    def drop_connections(self) -> None:
        """Reset every connection."""
        for writer in self._writers:
            writer.transport.abort()

    @property
    def open_connections(self) -> int:
        return len(self._writers)

    async def __aenter__(self) -> FakeBroker:
        await self.start()
        return self

    async def __aexit__(self, *details: object) -> None:
        await self.stop()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        self.connections_made += 1
        try:
            while await self._serve_one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            pass  # stop(): the streams machinery would log it as an error
        finally:
            self._writers.discard(writer)
            self._tasks.discard(task)
            writer.transport.abort()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        size = int.from_bytes(await reader.readexactly(SIZE_PREFIX), "big")
        frame = memoryview(bytearray(await reader.readexactly(size)))
        dialect = dialect_of(frame[0])
        header = dialect.read_request(frame)
        api, request = ApiKey(header.api), dialect.decode_body(header)
        self.requests.append((api, request))
        action = self.intercept(api, request)
        if isinstance(action, Hold):
            await action.event.wait()
            action = None
        match action:
            case Drop(serve_first):
                if serve_first:
                    await self._serve(api, request)
                return False
            case Silence():
                await asyncio.Event().wait()
            case Refuse(code, message):
                _write(writer, dialect.encode_error(header, request, code, message))
            case Raw(data):
                writer.write(data)
            case RefusePartitions(code, message):
                _write(writer, dialect.encode_response(header, _refusal(request, code, message)))
            case Respond(response):
                _write(writer, dialect.encode_response(header, response))
            case None:
                response = await self._serve(api, request)
                if api is not ApiKey.PRODUCE or request.acks != 0:
                    _write(writer, dialect.encode_response(header, response))
        await writer.drain()
        return True

    async def _serve(self, api: ApiKey, request: Any) -> Any:
        match api:
            case ApiKey.API_VERSIONS:
                return ApiVersionsResponse(
                    apis=[
                        ApiVersionRange(api=key, min_version=low, max_version=high)
                        for key, (low, high) in self.apis.items()
                    ],
                    finalized_features=[
                        FinalizedFeature(
                            name="transaction.version", max_level=self.coordinator.transaction_version, min_level=0
                        )
                    ],
                )
            case ApiKey.FIND_COORDINATOR:
                host, port = self.advertised or (self.host, self.port)
                return FindCoordinatorResponse(
                    coordinators=[
                        CoordinatorResult(key=key, node_id=self.node_id, host=host, port=port) for key in request.keys
                    ]
                )
            case ApiKey.METADATA:
                return self._metadata(request)
            case ApiKey.PRODUCE:
                return self._produce(request)
            case ApiKey.FETCH:
                return await self._fetch(request)
            case ApiKey.LIST_OFFSETS:
                return self._list_offsets(request)
            case ApiKey.INIT_PRODUCER_ID if request.transactional_id is not None:
                return self.coordinator.initialize(request)
            case ApiKey.ADD_PARTITIONS_TO_TXN:
                return self.coordinator.add(request)
            case ApiKey.ADD_OFFSETS_TO_TXN:
                return self.coordinator.add_group(request)
            case ApiKey.END_TXN:
                return self.coordinator.end(request)
            case ApiKey.TXN_OFFSET_COMMIT:
                return self.coordinator.commit_offsets(request)
            case ApiKey.INIT_PRODUCER_ID:
                self.next_producer_id += 1
                return InitProducerIdResponse(producer_id=self.next_producer_id - 1, producer_epoch=0)
        raise AssertionError(f"the fake broker has no {api.label}: intercept it")

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        names = list(self.topics) if request.names is None else request.names
        topics = []
        for name in names:
            if name not in self.topics and self.create_missing_topics and request.allow_auto_creation:
                self.create(name)
            if name not in self.topics:
                topics.append(TopicMetadata(name=name, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
                continue
            partitions = tuple(
                PartitionMetadata(
                    partition=partition, leader=self.leaders[TopicPartition(name, partition)], leader_epoch=0
                )
                for partition in range(self.topics[name])
            )
            topics.append(TopicMetadata(name=name, topic_id=name.encode().ljust(16, b"\0")[:16], partitions=partitions))
        addresses = [BrokerAddress(p.node_id, *(p.advertised or (p.host, p.port))) for p in self.peers]
        return MetadataResponse(cluster_id="fake-cluster", brokers=addresses, topics=topics)

    def _produce(self, request: ProduceRequest) -> ProduceResponse:
        topics = [
            ProduceTopicResult(
                name=topic.name,
                partitions=[
                    self._append(topic.name, partition)
                    if self._may_write(request, topic.name, partition)
                    else ProducePartitionResult(partition.partition, ErrorCode.INVALID_TXN_STATE)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        self.appended()
        return ProduceResponse(topics=topics)

    def _may_write(self, request: ProduceRequest, topic: str, entry: ProducePartition) -> bool:
        if request.transactional_id is None:
            return True
        return self.coordinator.takes(request, TopicPartition(topic, entry.partition))

    def _append(self, topic: str, entry: ProducePartition) -> ProducePartitionResult:
        topic_partition = TopicPartition(topic, entry.partition)
        log = self.logs.get(topic_partition)
        if log is None:
            return ProducePartitionResult(entry.partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if self.leaders[topic_partition] != self.node_id:
            return ProducePartitionResult(entry.partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        batch = RecordBatch(entry.batch)
        batch.ensure_valid()
        assert batch.size_bytes == len(entry.batch)
        if batch.producer_id >= 0:
            known = log.producers.get(batch.producer_id)
            verdict = None if known is None else known.check(batch)
            if isinstance(verdict, ErrorCode):
                return ProducePartitionResult(entry.partition, verdict)
            if verdict is not None:
                return ProducePartitionResult(entry.partition, base_offset=verdict, log_start_offset=0)
        base_offset = log.append(bytes(entry.batch))
        if batch.producer_id >= 0:
            log.producers.setdefault(batch.producer_id, FakeProducerState(batch.producer_epoch)).note(
                batch, base_offset
            )
        return ProducePartitionResult(entry.partition, base_offset=base_offset, log_start_offset=0)

    async def _fetch(self, request: FetchRequest) -> FetchResponse:
        deadline = asyncio.get_running_loop().time() + request.max_wait_ms / 1000
        while True:
            changed = self._changed
            response = self._read(request)
            size = sum(part.size for part in _records_of(response))
            failed = any(p.error is not ErrorCode.NONE for topic in response.topics for p in topic.partitions)
            remaining = deadline - asyncio.get_running_loop().time()
            if size >= request.min_bytes or failed or remaining <= 0:
                return response
            try:
                async with asyncio.timeout(remaining):
                    await changed.wait()
            except TimeoutError:
                return response

    def _read(self, request: FetchRequest) -> FetchResponse:
        budget = request.max_bytes
        topics: list[Any] = []
        for topic in request.topics:
            results = []
            for entry in topic.partitions:
                result, size = self._read_partition(TopicPartition(topic.name, entry.partition), entry, budget, topics)
                budget -= size
                results.append(result)
            topics.append(FetchTopicResult(name=topic.name, partitions=results))
        return FetchResponse(topics=topics)

    def _read_partition(
        self, topic_partition: TopicPartition, entry: FetchPartition, budget: int, _before: list[Any]
    ) -> tuple[FetchPartitionResult, int]:
        log = self.logs.get(topic_partition)
        if log is None:
            return FetchPartitionResult(partition=entry.partition, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), 0
        if self.leaders[topic_partition] != self.node_id:
            return FetchPartitionResult(partition=entry.partition, error=ErrorCode.NOT_LEADER_OR_FOLLOWER), 0
        result = FetchPartitionResult(
            partition=entry.partition,
            error=ErrorCode.NONE,
            high_watermark=log.end_offset,
            last_stable_offset=log.end_offset,
            log_start_offset=log.start_offset,
        )
        if not log.start_offset <= entry.offset <= log.end_offset:
            result.error = ErrorCode.OFFSET_OUT_OF_RANGE
            return result, 0
        wanted = [batch for batch in log.batches if RecordBatch(batch).next_offset > entry.offset]
        data = b"".join(wanted)[: max(min(entry.max_bytes, budget), len(wanted[0]) if wanted and budget > 0 else 0)]
        if data:
            result.records = RecordBytes(data)
        return result, len(data)

    def _list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        topics = []
        for topic in request.topics:
            results = []
            for entry in topic.partitions:
                log = self.logs.get(TopicPartition(topic.name, entry.partition))
                if log is None:
                    results.append(
                        ListOffsetsPartitionResult(
                            partition=entry.partition, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                        )
                    )
                    continue
                results.append(self._offset_at(log, entry.partition, entry.timestamp))
            topics.append(ListOffsetsTopicResult(name=topic.name, partitions=results))
        return ListOffsetsResponse(topics=topics)

    def _offset_at(self, log: FakeLog, partition: int, timestamp: int) -> ListOffsetsPartitionResult:
        if timestamp == -1:
            return ListOffsetsPartitionResult(partition=partition, offset=log.end_offset, leader_epoch=0)
        if timestamp == -2:
            return ListOffsetsPartitionResult(partition=partition, offset=log.start_offset, leader_epoch=0)
        for record in log.records():
            if record.timestamp >= timestamp:
                return ListOffsetsPartitionResult(
                    partition=partition,
                    error=ErrorCode.NONE,
                    offset=record.offset,
                    timestamp=record.timestamp,
                    leader_epoch=0,
                )
        return ListOffsetsPartitionResult(partition=partition)


def _write(writer: asyncio.StreamWriter, frame: EncodedFrame) -> None:
    head, parts = frame
    writer.write(head)
    for part in parts:
        assert isinstance(part, bytes)
        writer.write(part)


def _records_of(response: Any) -> list[Any]:
    if not isinstance(response, FetchResponse):
        return []
    return [p.records for topic in response.topics for p in topic.partitions]


def _refusal(request: Any, code: ErrorCode, message: str | None) -> Any:
    if isinstance(request, ProduceRequest):
        return ProduceResponse(
            topics=[
                ProduceTopicResult(
                    name=topic.name,
                    partitions=[ProducePartitionResult(p.partition, code, message=message) for p in topic.partitions],
                )
                for topic in request.topics
            ]
        )
    if isinstance(request, FetchRequest):
        return FetchResponse(
            topics=[
                FetchTopicResult(
                    name=topic.name,
                    partitions=[FetchPartitionResult(partition=p.partition, error=code) for p in topic.partitions],
                )
                for topic in request.topics
            ]
        )
    if isinstance(request, ListOffsetsRequest):
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResult(
                    name=topic.name,
                    partitions=[
                        ListOffsetsPartitionResult(partition=p.partition, error=code) for p in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )
    raise AssertionError(f"no refusal of partitions for {type(request).__name__}")
