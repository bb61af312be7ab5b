"""What consumers of the classic protocol put into a JoinGroup and a SyncGroup: subscription and assignment.

    subscription := int16 version | topics []string | user data nullable bytes |
                    owned partitions (from 1) | generation int32 (from 2) | rack id nullable string (from 3)
    assignment   := int16 version | partitions | user data nullable bytes
    partitions   := [] of topic string, partitions []int32

Nothing of it is flexible: strings have an int16 size, bytes and arrays an int32. A version above 3 begins like 3.
Source: Kafka's ConsumerProtocolSubscription, ConsumerProtocolAssignment and ConsumerProtocol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.groups.classic_fields import (
    read_array_length,
    read_nullable_string,
    read_string,
    write_bytes,
    write_nullable_string,
    write_string,
)
from barnabas.protocol.primitives import Reader, Writer

NEWEST: Final = 3

NO_GENERATION: Final = -1

_OWNED_FROM: Final = 1
_GENERATION_FROM: Final = 2
_RACK_FROM: Final = 3


class Subscription(NamedTuple):
    """What a consumer wants. `owned`: the partitions that it still has, by topic; `generation` in which it got them."""

    topics: Sequence[str]
    user_data: bytes | None = None
    owned: Mapping[str, Sequence[int]] = {}
    generation: int = NO_GENERATION
    rack_id: str | None = None
    version: int = NEWEST


class Assignment(NamedTuple):
    """What a consumer gets: partitions by topic."""

    partitions: Mapping[str, Sequence[int]]
    user_data: bytes | None = None
    version: int = NEWEST


def encode_subscription(value: Subscription) -> bytes:
    """The bytes of `value.version`; what it cannot hold is left out. Raises ValueError for a far too long string."""
    writer = Writer().int16(value.version).int32(len(value.topics))
    for topic in value.topics:
        write_string(writer, topic)
    _put_nullable_bytes(writer, value.user_data)
    if value.version >= _OWNED_FROM:
        _put_partitions(writer, value.owned)
    if value.version >= _GENERATION_FROM:
        writer.int32(value.generation)
    if value.version >= _RACK_FROM:
        write_nullable_string(writer, value.rack_id)
    return writer.to_bytes()


def decode_subscription(data: bytes) -> Subscription:
    """Of every version. Raises DecodeError."""
    reader = Reader(data)
    version = _version(reader)
    topics = [read_string(reader) for _ in range(read_array_length(reader))]
    user_data = _nullable_bytes(reader)
    owned = _partitions(reader) if version >= _OWNED_FROM else {}
    generation = reader.int32() if version >= _GENERATION_FROM else NO_GENERATION
    rack_id = read_nullable_string(reader) if version >= _RACK_FROM else None
    return Subscription(topics, user_data, owned, generation, rack_id, version)


def encode_assignment(value: Assignment) -> bytes:
    """All versions have the same fields. Raises ValueError for a far too long string."""
    writer = Writer().int16(value.version)
    _put_partitions(writer, value.partitions)
    return _put_nullable_bytes(writer, value.user_data).to_bytes()


def decode_assignment(data: bytes) -> Assignment:
    """Of every version; no bytes are no partitions: the member has never synced. Raises DecodeError."""
    if not data:
        return Assignment({})
    reader = Reader(data)
    version = _version(reader)
    return Assignment(_partitions(reader), _nullable_bytes(reader), version)


def _version(reader: Reader) -> int:
    version = reader.int16()
    if version < 0:
        raise DecodeError(f"version {version} of the consumers' protocol is negative")
    return version


def _put_partitions(writer: Writer, topics: Mapping[str, Sequence[int]]) -> None:
    writer.int32(len(topics))
    for topic, partitions in topics.items():
        write_string(writer, topic).int32(len(partitions))
        for partition in partitions:
            writer.int32(partition)


def _partitions(reader: Reader) -> dict[str, Sequence[int]]:
    topics: dict[str, Sequence[int]] = {}
    for _ in range(read_array_length(reader)):
        topic = read_string(reader)
        topics[topic] = tuple([reader.int32() for _ in range(read_array_length(reader))])
    return topics


def _put_nullable_bytes(writer: Writer, value: bytes | None) -> Writer:
    return writer.int32(-1) if value is None else write_bytes(writer, value)


def _nullable_bytes(reader: Reader) -> bytes | None:
    size_bytes = reader.int32()
    return None if size_bytes < 0 else reader.raw(size_bytes)
