"""A blocking client of Kafka's protocol with the broker's own messages, for tests of what handlers do.

    with WireClient(daemon.host, daemon.port) as wire:
        answer = wire.call(CreatePartitionsRequest(topics=[NewPartitions(name="orders", count=3)]))

Requests have the highest stable version that is served, and name topics by their names. `KafkaWire` sends any version
in a codec that shares nothing with the broker's, for tests of what is on the wire.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable
from typing import Any, Final, TypeVar, cast

from barnabas.protocol.kafka.apis import KAFKA_APIS, OWN_APIS
from barnabas.protocol.kafka.client_codec import read_answer, request_frame
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.fetch import (
    READ_UNCOMMITTED,
    FetchPartition,
    FetchPartitionResult,
    FetchRequest,
    FetchTopic,
)
from barnabas.protocol.messages.data.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.data.produce import (
    ACKS_NONE,
    ProducePartition,
    ProducePartitionResult,
    ProduceRequest,
    ProduceTopic,
)
from barnabas.protocol.messages.topics.topics import (
    CreateTopicsRequest,
    DeletableTopicResult,
    DeleteTopicsRequest,
    NewTopic,
    TopicReference,
    config_rows,
)
from barnabas.protocol.wire.fields import fields_of
from barnabas.protocol.wire.structures import Request, Struct
from tests.support.frame_connection import FrameConnection

Answer = TypeVar("Answer", bound=Struct)

_VERSIONS: Final = {
    **{api.key: api.highest_for(unstable=False) for api in (*KAFKA_APIS, *OWN_APIS)},
    ApiKey.PRODUCE: 12,
    ApiKey.FETCH: 12,
}
"""The version to send: of these two the last that names topics by their names."""

_hosts = itertools.count(1)


def new_host() -> str:
    """Return a loopback address that no client has had: the broker logs few repeated warnings of one host."""
    number = next(_hosts)
    return f"127.1.{number >> 8}.{number & 0xFF}"


class WireClient(FrameConnection):
    """One connection. `call` sends a request and reads its answer; `send` and `receive` do one half each."""

    def __init__(self, host: str, port: int, source: str = "") -> None:
        """`source` is the client's address, of this machine; "": the system's choice."""
        super().__init__(host, port, source)
        self._awaited: deque[tuple[int, type[Request[Any]]]] = deque()

    def frame(self, request: Request[Any]) -> bytes:
        """Return the bytes of a request with the next correlation id; `receive` reads its answer in its turn."""
        self.correlation_id += 1
        version = _VERSIONS[request.api_key]
        _ensure_sent(request, version)
        if not (isinstance(request, ProduceRequest) and request.acks == ACKS_NONE):
            self._awaited.append((self.correlation_id, type(request)))
        return request_frame(version, self.correlation_id, b"wire", request)

    def send(self, request: Request[Any]) -> None:
        """Send a request without waiting for the answer."""
        self.socket.sendall(self.frame(request))

    def receive(self) -> Any:
        """Return the next answer, which must be that to the first request without one."""
        correlation_id, asked = self._awaited.popleft()
        frame = memoryview(self.receive_frame())
        assert int.from_bytes(frame[:4], "big") == correlation_id
        return read_answer(asked, _VERSIONS[asked.api_key], correlation_id, frame)

    def call(self, request: Request[Answer]) -> Answer:
        """Return the answer to a request."""
        self.send(request)
        return cast(Answer, self.receive())

    # --- calls that most tests need

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        """Create a topic; config names with underscores for dots."""
        named = {key.replace("_", "."): value for key, value in configs.items()}
        topic = NewTopic(name=name, partitions=partitions, replication_factor=-1, configs=config_rows(named))
        (created,) = self.call(CreateTopicsRequest(topics=[topic])).topics
        assert created.error == 0, created.message

    def delete_topic(self, name: str) -> DeletableTopicResult:
        """Delete a topic."""
        (deleted,) = self.call(DeleteTopicsRequest(references=[TopicReference(name=name)])).topics
        return deleted

    def produce(
        self, topic: str, batch: bytes | bytearray, partition: int = 0, acks: int = 1
    ) -> ProducePartitionResult:
        """Produce one batch to one partition."""
        return self.call(produce_request(topic, batch, partition, acks)).topics[0].partitions[0]

    def fetch(
        self, topic: str, offset: int, partition: int = 0, *, max_bytes: int = 1 << 20, max_wait_ms: int = 0
    ) -> FetchPartitionResult:
        """Fetch one partition."""
        return self.call(fetch_request(topic, offset, partition, max_bytes, max_wait_ms)).topics[0].partitions[0]

    def end_offset(self, topic: str, partition: int = 0) -> int:
        """Return a partition's log end offset."""
        row = ListOffsetsPartition(partition=partition, timestamp=-1)
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[row])])
        return self.call(request).topics[0].partitions[0].offset


def produce_request(topic: str, batch: bytes | bytearray, partition: int = 0, acks: int = 1) -> ProduceRequest:
    """Build a Produce request with one batch for one partition."""
    return ProduceRequest(
        acks=acks,
        timeout_ms=30_000,
        topics=[ProduceTopic(name=topic, partitions=[ProducePartition(partition, memoryview(batch))])],
    )


def fetch_request(
    topic: str, offset: int, partition: int = 0, max_bytes: int = 1 << 20, max_wait_ms: int = 0, min_bytes: int = 1
) -> FetchRequest:
    """Build a Fetch request for one partition."""
    return fetch_requests(
        topic, [(partition, offset, max_bytes)], max_bytes, max_wait_ms=max_wait_ms, min_bytes=min_bytes
    )


def fetch_requests(
    topic: str,
    partitions: Iterable[tuple[int, int, int]],
    max_bytes: int = 1 << 20,
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    isolation: int = READ_UNCOMMITTED,
) -> FetchRequest:
    """Build a Fetch request for partitions of a topic, each with its offset and its limit of bytes."""
    rows = [FetchPartition(partition=number, offset=offset, max_bytes=limit) for number, offset, limit in partitions]
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation=isolation,
        topics=[FetchTopic(name=topic, partitions=rows)],
    )


def _ensure_sent(request: Struct, version: int) -> None:
    """Fail the test if the version lacks a field that the request has: nobody would notice."""
    for each in fields_of(type(request)):
        is_sent = each.kind is None or each.since <= version <= each.until
        assert is_sent or getattr(request, each.name) == each.default, f"version {version} has no {each.name}"
