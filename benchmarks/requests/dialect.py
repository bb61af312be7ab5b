"""The benchmark's requests in the native dialect (docs/protocol.md), and a blocking client for some of them."""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol

import msgpack

_MAGIC = 0xB7
_PRODUCE, _FETCH, _LIST_OFFSETS, _HELLO, _CREATE_TOPICS = 0, 1, 2, 18, 19
_LATEST = -1

NO_CONFIGS: Final[Mapping[str, str]] = MappingProxyType({})


class Dialect(Protocol):
    """Requests that every measured system must support."""

    name: str

    def produce(self, topic: str, batch: bytes, *, partition: int = 0, acks: int = 1) -> bytes: ...
    def fetch(self, topic: str, offset: int, max_bytes: int, *, partition: int = 0) -> bytes: ...
    def say_hello(self, connection: socket.socket) -> None: ...
    def end_offset(self, connection: socket.socket, topic: str, partition: int = 0) -> int: ...
    def create(
        self, connection: socket.socket, topic: str, partitions: int = 1, configs: Mapping[str, str] = NO_CONFIGS
    ) -> None: ...


class NativeDialect:
    """Complete frames with their size prefix, for load.c or for `call`."""

    name = "native"

    def hello(self) -> bytes:
        return self._frame(_HELLO, {"client": "benchmark", "client_version": "0"})

    def create_topic(self, topic: str, partitions: int = 1, configs: Mapping[str, str] = NO_CONFIGS) -> bytes:
        topics = [[topic, partitions, 1, [list(entry) for entry in configs.items()]]]
        return self._frame(_CREATE_TOPICS, {"topics": topics, "timeout_ms": 10_000})

    def produce(self, topic: str, batch: bytes, *, partition: int = 0, acks: int = 1) -> bytes:
        body = {"acks": acks, "timeout_ms": 10_000, "topics": [[topic, [[partition, len(batch)]]]]}
        return self._frame(_PRODUCE, body, batch)

    def fetch(self, topic: str, offset: int, max_bytes: int, *, partition: int = 0) -> bytes:
        topics = [[topic, [[partition, offset, max_bytes]]]]
        return self._frame(
            _FETCH, {"max_wait_ms": 500, "min_bytes": 1, "max_bytes": max_bytes, "isolation": 0, "topics": topics}
        )

    def end_offset(self, connection: socket.socket, topic: str, partition: int = 0) -> int:
        """Return the log end offset. Raises RuntimeError when the broker answers with an error."""
        body = {"isolation": 0, "topics": [[topic, [[partition, _LATEST]]]]}
        answer, _ = self.call(connection, self._frame(_LIST_OFFSETS, body))
        _, error, offset, _, _ = answer["topics"][0][1][0]
        if error:
            raise RuntimeError(f"list_offsets {topic}-{partition}: error {error}")
        return int(offset)

    def call(self, connection: socket.socket, frame: bytes) -> tuple[dict[str, Any], bytes]:
        """Send one request; return (body, records). Raises RuntimeError on a top-level error code."""
        connection.sendall(frame)
        size = int.from_bytes(receive_exactly(connection, 4), "big")
        answer = receive_exactly(connection, size)
        header_end = 4 + int.from_bytes(answer[1:4], "big")
        api, _, _, error, body = msgpack.unpackb(answer[4:header_end])
        if error:
            raise RuntimeError(f"api {api}: error {error}")
        return body, answer[header_end:]

    def say_hello(self, connection: socket.socket) -> None:
        """Send the first request of a connection and read its answer."""
        self.call(connection, self.hello())

    def create(
        self, connection: socket.socket, topic: str, partitions: int = 1, configs: Mapping[str, str] = NO_CONFIGS
    ) -> None:
        """Create a topic. Raises RuntimeError when the broker refuses it."""
        body, _ = self.call(connection, self.create_topic(topic, partitions, configs))
        _, error, message, *_ = body["topics"][0]
        if error:
            raise RuntimeError(f"create topic {topic}: error {error}: {message}")

    def _frame(self, api: int, body: dict[str, Any], records: bytes = b"") -> bytes:
        header: bytes = msgpack.packb([api, 0, 1, "benchmark", body])
        size = 4 + len(header) + len(records)
        return struct.pack(">iB", size, _MAGIC) + len(header).to_bytes(3, "big") + header + records


def receive_exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise RuntimeError("the broker closed the connection")
        data += part
    return bytes(data)
