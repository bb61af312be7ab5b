"""Requests of Kafka's protocol in flexible versions, and blocking calls of those that surround a measurement.

`kafka_dialect` has the lowest versions; these are the ones that current clients send.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.requests.kafka_dialect import NO_CONFIGS, receive_exactly

_PRODUCE, _LIST_OFFSETS, _CREATE_TOPICS, _DELETE_TOPICS, _INCREMENTAL_ALTER_CONFIGS, _ALTER_CLIENT_QUOTAS = (
    0,
    2,
    19,
    20,
    44,
    49,
)
_PRODUCE_VERSION, _CREATE_TOPICS_VERSION, _DELETE_TOPICS_VERSION = 13, 7, 6
_COMMITTED_ONLY, _EVERYTHING = 1, 0
_LATEST = -1
_TIMEOUT_MS = 60_000
_CREATE_SECONDS_MAX = 600.0
_TOPIC_RESOURCE = 2
_SET = 0
_LEADER_SECONDS_MAX = 300.0


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of a running broker."""

    name: str
    topic_id: bytes
    partitions: int


def create_topic(
    connection: socket.socket,
    topic: str,
    partitions: int,
    configs: Mapping[str, str] = NO_CONFIGS,
    replicas: Sequence[int] = (),
) -> Topic:
    """Create a topic and wait until all partitions answer. Raises RuntimeError when it is refused.

    `replicas`: the nodes of a topic with one partition, its leader first; else each partition has one replica.
    """
    entries = b"".join(compact(name) + compact(value) + b"\0" for name, value in configs.items())
    if replicas:
        nodes = b"".join(struct.pack(">i", node) for node in replicas)
        assigned = varint(2) + struct.pack(">i", 0) + varint(len(replicas) + 1) + nodes + b"\0"
        placed = struct.pack(">ih", -1, -1) + assigned
    else:
        placed = struct.pack(">ih", partitions, 1) + b"\x01"
    one = compact(topic) + placed + varint(len(configs) + 1) + entries + b"\0"
    body = varint(2) + one + struct.pack(">ib", int(_CREATE_SECONDS_MAX * 1000), 0) + b"\0"
    connection.settimeout(_CREATE_SECONDS_MAX)
    answer = call_flexible(connection, _CREATE_TOPICS, _CREATE_TOPICS_VERSION, body)
    at = 4 + 1 + len(compact(topic))
    topic_id = answer[at : at + 16]
    (error,) = struct.unpack_from(">h", answer, at + 16)
    if error:
        raise RuntimeError(f"create topic {topic}: error {error}: {_short_text(answer, at + 18)}")
    await_leaders(connection, topic, partitions)
    return Topic(topic, topic_id, partitions)


def delete_topic(connection: socket.socket, topic: str) -> None:
    """Delete a topic. Raises RuntimeError when it is refused."""
    body = varint(2) + compact(topic) + bytes(16) + b"\0" + struct.pack(">i", _TIMEOUT_MS) + b"\0"
    answer = call_flexible(connection, _DELETE_TOPICS, _DELETE_TOPICS_VERSION, body)
    (error,) = struct.unpack_from(">h", answer, 4 + 1 + len(compact(topic)) + 16)
    if error:
        raise RuntimeError(f"delete topic {topic}: error {error}")


def await_leaders(connection: socket.socket, topic: str, partitions: int) -> None:
    """Wait until every partition answers: Kafka creates a topic before its partitions have a leader."""
    give_up = time.monotonic() + _LEADER_SECONDS_MAX
    while True:
        try:
            end_offsets(connection, topic, partitions)
            return
        except RuntimeError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.01)


def end_offsets(connection: socket.socket, topic: str, partitions: int, *, committed: bool = False) -> list[int]:
    """Return each partition's high watermark, or its last stable offset. Raises RuntimeError on an error code."""
    numbers = b"".join(struct.pack(">iq", number, _LATEST) for number in range(partitions))
    isolation = _COMMITTED_ONLY if committed else _EVERYTHING
    body = struct.pack(">ib", -1, isolation) + struct.pack(">i", 1) + text(topic) + struct.pack(">i", partitions)
    answer = call(connection, _LIST_OFFSETS, 2, body + numbers)
    at = 4 + 4 + 2 + len(topic) + 4
    found: dict[int, int] = {}
    for _ in range(partitions):
        number, error, _, offset = struct.unpack_from(">ihqq", answer, at)
        if error:
            raise RuntimeError(f"list_offsets {topic}-{number}: error {error}")
        found[number] = offset
        at += 22
    return [found[number] for number in range(partitions)]


def alter_topic(connection: socket.socket, topic: str, configs: Mapping[str, str]) -> None:
    """Set topic configs, by IncrementalAlterConfigs. Raises RuntimeError when they are refused."""
    entries = b"".join(
        compact(name) + struct.pack(">b", _SET) + compact(value) + b"\0" for name, value in configs.items()
    )
    one = struct.pack(">b", _TOPIC_RESOURCE) + compact(topic) + varint(len(configs) + 1) + entries + b"\0"
    answer = call_flexible(connection, _INCREMENTAL_ALTER_CONFIGS, 1, varint(2) + one + b"\0\0")
    (error,) = struct.unpack_from(">h", answer, 4 + 1)
    if error:
        raise RuntimeError(f"alter topic {topic}: error {error}")


def alter_client_quota(connection: socket.socket, client_id: str, quotas: Mapping[str, float | None]) -> None:
    """Set or (None) remove quotas of a client id, by AlterClientQuotas. Raises RuntimeError when they are refused."""
    entity = varint(2) + compact("client-id") + compact(client_id) + b"\0"
    operations = b"".join(
        compact(name) + struct.pack(">db", value or 0.0, value is None) + b"\0" for name, value in quotas.items()
    )
    body = varint(2) + entity + varint(len(quotas) + 1) + operations + b"\0" + b"\0\0"
    answer = call_flexible(connection, _ALTER_CLIENT_QUOTAS, 1, body)
    (error,) = struct.unpack_from(">h", answer, 4 + 1)
    if error:
        raise RuntimeError(f"alter quota of {client_id}: error {error}")


def produce_frame(topic: Topic, partitions: Sequence[int], batch: bytes, *, acks: int = 1) -> bytes:
    """Return a Produce request of the version that Kafka 4.3's own client sends, with one batch for each partition."""
    body = compact(None) + struct.pack(">hi", acks, _TIMEOUT_MS) + varint(2) + topic.topic_id
    body += varint(len(partitions) + 1)
    one = varint(len(batch) + 1) + batch + b"\0"
    body += b"".join(struct.pack(">i", partition) + one for partition in partitions) + b"\0\0"
    return flexible_frame(_PRODUCE, _PRODUCE_VERSION, body)


def plain_frame(api: int, version: int, body: bytes) -> bytes:
    """Return a complete request with a classic header."""
    payload = struct.pack(">hhi", api, version, 1) + text("benchmark") + body
    return struct.pack(">i", len(payload)) + payload


def flexible_frame(api: int, version: int, body: bytes) -> bytes:
    """Return a complete request with a flexible header."""
    payload = struct.pack(">hhi", api, version, 1) + text("benchmark") + b"\0" + body
    return struct.pack(">i", len(payload)) + payload


def call(connection: socket.socket, api: int, version: int, body: bytes) -> bytes:
    """Send a request with a classic header; return the answer after its correlation id."""
    connection.sendall(plain_frame(api, version, body))
    return _receive_answer(connection)[4:]


def call_flexible(connection: socket.socket, api: int, version: int, body: bytes) -> bytes:
    """Send a request with a flexible header; return the answer after its header, which has no tagged fields."""
    connection.sendall(flexible_frame(api, version, body))
    return _receive_answer(connection)[5:]


def text(value: str | None) -> bytes:
    """Encode a string with an int16 size."""
    return struct.pack(">h", -1) if value is None else struct.pack(">h", len(value)) + value.encode()


def compact(value: str | None) -> bytes:
    """Encode a compact string."""
    return b"\0" if value is None else varint(len(value) + 1) + value.encode()


def varint(value: int) -> bytes:
    """Encode an unsigned varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _short_text(answer: bytes, at: int) -> str:
    """Return the compact string at a position, at most its first 126 bytes."""
    return answer[at + 1 : at + min(answer[at] or 1, 127)].decode(errors="replace")


def _receive_answer(connection: socket.socket) -> bytes:
    return receive_exactly(connection, int.from_bytes(receive_exactly(connection, 4), "big"))
