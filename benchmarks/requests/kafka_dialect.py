"""The benchmark's requests in Kafka's own protocol, in the lowest versions that Kafka 4.x accepts.

None of these versions is flexible, so a few lines encode them. Barnabas and Apache Kafka receive identical frames.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_PRODUCE, _FETCH, _LIST_OFFSETS, _API_VERSIONS, _CREATE_TOPICS = 0, 1, 2, 18, 19
_LATEST = -1
_LEADER_SECONDS_MAX = 60.0

NO_CONFIGS: Final[Mapping[str, str]] = MappingProxyType({})


class KafkaDialect:
    """Complete frames with their size prefix, for load.c, and a blocking client for some of them."""

    def hello(self) -> bytes:
        return _frame(_API_VERSIONS, 0, b"")

    def produce(self, topic: str, batch: bytes, *, partition: int = 0, acks: int = 1) -> bytes:
        head = struct.pack(">hhi", -1, acks, 10_000)
        return _frame(
            _PRODUCE, 3, head + _array(_string(topic) + _array(struct.pack(">ii", partition, len(batch)) + batch))
        )

    def fetch(self, topic: str, offset: int, max_bytes: int, *, partition: int = 0) -> bytes:
        head = struct.pack(">iiiib", -1, 500, 1, max_bytes, 0)
        return _frame(
            _FETCH, 4, head + _array(_string(topic) + _array(struct.pack(">iqi", partition, offset, max_bytes)))
        )

    def say_hello(self, connection: socket.socket) -> None:
        """Send the first request of a connection and read its answer."""
        (error,) = struct.unpack_from(">h", _call(connection, self.hello()))
        _check(error, "api_versions")

    def end_offset(self, connection: socket.socket, topic: str, partition: int = 0) -> int:
        """Return the log end offset. Raises RuntimeError when the broker answers with an error."""
        head = struct.pack(">i", -1)
        answer = _call(
            connection,
            _frame(_LIST_OFFSETS, 1, head + _array(_string(topic) + _array(struct.pack(">iq", partition, _LATEST)))),
        )
        _, error, _, offset = struct.unpack_from(">ihqq", answer, 4 + 2 + len(topic) + 4)
        _check(error, f"list_offsets {topic}-{partition}")
        return int(offset)

    def create(
        self, connection: socket.socket, topic: str, partitions: int = 1, configs: Mapping[str, str] = NO_CONFIGS
    ) -> None:
        """Create a topic. Raises RuntimeError when the broker refuses it."""
        entries = b"".join(_string(name) + _string(value) for name, value in configs.items())
        one = _string(topic) + struct.pack(">ihii", partitions, 1, 0, len(configs)) + entries
        answer = _call(connection, _frame(_CREATE_TOPICS, 2, _array(one) + struct.pack(">ib", 10_000, 0)))
        (error,) = struct.unpack_from(">h", answer, 4 + 4 + 2 + len(topic))
        _check(error, f"create topic {topic}")
        self._await_leaders(connection, topic, partitions)

    def _await_leaders(self, connection: socket.socket, topic: str, partitions: int) -> None:
        """Wait until every partition answers: Kafka creates a topic before its partitions have a leader."""
        give_up = time.monotonic() + _LEADER_SECONDS_MAX
        for partition in range(partitions):
            while True:
                try:
                    self.end_offset(connection, topic, partition)
                    break
                except RuntimeError:
                    if time.monotonic() > give_up:
                        raise
                    time.sleep(0.01)


def receive_exactly(connection: socket.socket, size: int) -> bytes:
    """Return the next `size` bytes. Raises RuntimeError when the broker closes the connection before."""
    data = bytearray()
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise RuntimeError("the broker closed the connection")
        data += part
    return bytes(data)


def _call(connection: socket.socket, frame: bytes) -> bytes:
    """Send a request; return the answer after its correlation id."""
    connection.sendall(frame)
    return receive_exactly(connection, int.from_bytes(receive_exactly(connection, 4), "big"))[4:]


def _check(error: int, what: str) -> None:
    if error:
        raise RuntimeError(f"{what}: error {error}")


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _array(only: bytes) -> bytes:
    """Encode an array of one element."""
    return struct.pack(">i", 1) + only


def _frame(api: int, version: int, body: bytes) -> bytes:
    header = struct.pack(">hhi", api, version, 1) + _string("benchmark")
    return struct.pack(">i", len(header) + len(body)) + header + body
