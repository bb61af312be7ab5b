"""A blocking client of the native dialect for tests that need to see or to break single frames."""

from __future__ import annotations

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
from barnabas.protocol.messages.topics.topics import CreateTopicsRequest, NewTopic
from barnabas.protocol.native import codec

TIMEOUT_S = 10.0


class WireClient:
    """One connection. `call` sends a request and reads its answer; `send` and `receive` do one half each."""

    def __init__(self, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port), timeout=TIMEOUT_S)
        self.correlation_id = 0

    def __enter__(self) -> WireClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.socket.close()

    def frame(self, api: ApiKey, request: Any) -> bytes:
        """The bytes of a request, with the next correlation id."""
        self.correlation_id += 1
        return b"".join(codec.encode_request(api, self.correlation_id, "wire", request))

    def send(self, api: ApiKey, request: Any) -> None:
        """Send a request without waiting for its answer."""
        self.socket.sendall(self.frame(api, request))

    def receive(self) -> codec.ResponseHeader:
        """The next answer, its body not decoded."""
        size = int.from_bytes(self._read(SIZE_PREFIX), "big")
        return codec.read_response(memoryview(self._read(size)))

    def call(self, api: ApiKey, request: Any) -> Any:
        """The decoded answer; an error of the request as a whole fails the test."""
        self.send(api, request)
        answer = self.receive()
        assert answer.error == 0, answer.message
        return codec.decode_response(answer)

    def is_closed_by_broker(self) -> bool:
        """Whether the broker ends the connection without another byte (waits for it)."""
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

    # --- the calls that most tests need

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        """Config names with underscores for dots."""
        named = {key.replace("_", "."): value for key, value in configs.items()}
        answer = self.call(ApiKey.CREATE_TOPICS, CreateTopicsRequest([NewTopic(name, partitions, -1, named)]))
        assert answer.topics[0].error == 0, answer.topics[0].message

    def produce(
        self, topic: str, batch: bytes | bytearray, partition: int = 0, acks: int = 1
    ) -> ProducePartitionResult:
        """One batch to one partition."""
        answer = self.call(ApiKey.PRODUCE, produce_request(topic, batch, partition, acks))
        result: ProducePartitionResult = answer.topics[0].partitions[0]
        return result

    def fetch(
        self, topic: str, offset: int, partition: int = 0, *, max_bytes: int = 1 << 20, max_wait_ms: int = 0
    ) -> FetchPartitionResult:
        """One partition."""
        answer = self.call(ApiKey.FETCH, fetch_request(topic, offset, partition, max_bytes, max_wait_ms))
        result: FetchPartitionResult = answer.topics[0].partitions[0]
        return result

    def end_offset(self, topic: str, partition: int = 0) -> int:
        """The end of a partition's log."""
        request = ListOffsetsRequest(0, [ListOffsetsTopic(topic, [ListOffsetsPartition(partition, -1)])])
        offset: int = self.call(ApiKey.LIST_OFFSETS, request).topics[0].partitions[0].offset
        return offset


def produce_request(topic: str, batch: bytes | bytearray, partition: int = 0, acks: int = 1) -> ProduceRequest:
    """One batch to one partition."""
    return ProduceRequest(acks, 30_000, [ProduceTopic(topic, [ProducePartition(partition, memoryview(batch))])])


def fetch_request(
    topic: str, offset: int, partition: int = 0, max_bytes: int = 1 << 20, max_wait_ms: int = 0, min_bytes: int = 1
) -> FetchRequest:
    """One partition."""
    return FetchRequest(
        max_wait_ms, min_bytes, max_bytes, 0, [FetchTopic(topic, [FetchPartition(partition, offset, max_bytes)])]
    )
