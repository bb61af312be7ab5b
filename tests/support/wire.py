"""A blocking client of the native dialect for tests that inspect or corrupt single frames."""

from __future__ import annotations

import itertools
import socket
from types import TracebackType
from typing import Any

from barnabas.protocol.framing import SIZE_PREFIX
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.fetch import FetchPartition, FetchPartitionResult, FetchRequest, FetchTopic
from barnabas.protocol.messages.data.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.data.produce import (
    ProducePartition,
    ProducePartitionResult,
    ProduceRequest,
    ProduceTopic,
)
from barnabas.protocol.messages.topics.topics import CreateTopicsRequest, NewTopic, config_rows
from barnabas.protocol.native import codec

TIMEOUT_S = 30.0

_hosts = itertools.count(1)


def new_host() -> str:
    """Return a loopback address that no client has had: the broker logs few repeated warnings of one host."""
    number = next(_hosts)
    return f"127.1.{number >> 8}.{number & 0xFF}"


class WireClient:
    """One connection. `call` sends a request and reads its response; `send` and `receive` do one half each."""

    def __init__(self, host: str, port: int, source: str = "") -> None:
        """`source` is the client's address, of this machine; "": the system's choice."""
        self.socket = socket.create_connection((host, port), timeout=TIMEOUT_S, source_address=(source, 0))
        self.correlation_id = 0

    def __enter__(self) -> WireClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.socket.close()

    def frame(self, api: ApiKey, request: Any) -> bytes:
        """Return the bytes of a request with the next correlation id."""
        self.correlation_id += 1
        return b"".join(codec.encode_request(api, self.correlation_id, "wire", request))

    def send(self, api: ApiKey, request: Any) -> None:
        """Send a request without waiting for the response."""
        self.socket.sendall(self.frame(api, request))

    def receive(self) -> codec.ResponseHeader:
        """Read the next response without decoding its body."""
        size = int.from_bytes(self._read(SIZE_PREFIX), "big")
        return codec.read_response(memoryview(self._read(size)))

    def call(self, api: ApiKey, request: Any) -> Any:
        """Return the decoded response; an error of the whole request fails the test."""
        self.send(api, request)
        answer = self.receive()
        assert answer.error == 0, answer.message
        return codec.decode_response(answer)

    def is_closed_by_broker(self) -> bool:
        """Wait for data; return whether the broker closes the connection without sending a byte."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _read(self, size: int) -> bytes:
        parts = []
        while size:
            part = self.socket.recv(min(size, 1 << 20))
            if not part:
                raise ConnectionError("the broker closed the connection")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    # --- calls that most tests need

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        """Create a topic; config names with underscores for dots."""
        named = {key.replace("_", "."): value for key, value in configs.items()}
        answer = self.call(
            ApiKey.CREATE_TOPICS,
            CreateTopicsRequest(
                topics=[NewTopic(name=name, partitions=partitions, replication_factor=-1, configs=config_rows(named))]
            ),
        )
        assert answer.topics[0].error == 0, answer.topics[0].message

    def produce(
        self, topic: str, batch: bytes | bytearray, partition: int = 0, acks: int = 1
    ) -> ProducePartitionResult:
        """Produce one batch to one partition."""
        answer = self.call(ApiKey.PRODUCE, produce_request(topic, batch, partition, acks))
        result: ProducePartitionResult = answer.topics[0].partitions[0]
        return result

    def fetch(
        self, topic: str, offset: int, partition: int = 0, *, max_bytes: int = 1 << 20, max_wait_ms: int = 0
    ) -> FetchPartitionResult:
        """Fetch one partition."""
        answer = self.call(ApiKey.FETCH, fetch_request(topic, offset, partition, max_bytes, max_wait_ms))
        result: FetchPartitionResult = answer.topics[0].partitions[0]
        return result

    def end_offset(self, topic: str, partition: int = 0) -> int:
        """Return a partition's log end offset."""
        request = ListOffsetsRequest(
            isolation=0,
            topics=[ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition=partition, timestamp=-1)])],
        )
        offset: int = self.call(ApiKey.LIST_OFFSETS, request).topics[0].partitions[0].offset
        return offset


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
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation=0,
        topics=[
            FetchTopic(name=topic, partitions=[FetchPartition(partition=partition, offset=offset, max_bytes=max_bytes)])
        ],
    )
