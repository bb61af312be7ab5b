"""The embedded protocol of consumers: subscription and assignment in a JoinGroup and a SyncGroup of type `consumer`.

    subscription := int16 version | topics []string | user data nullable bytes |
                    owned partitions (from 1) | generation int32 (from 2) | rack id nullable string (from 3)
    assignment   := int16 version | partitions | user data nullable bytes
    partitions   := [] of topic string, partitions []int32

No field is flexible: strings have an int16 size, bytes and arrays an int32. Versions above 3 begin like 3, and every
reader accepts them. A member without an assignment may get no bytes at all.
Source: Kafka's ConsumerProtocolSubscription, ConsumerProtocolAssignment and ConsumerProtocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from barnabas.protocol.topic_partition import TopicPartition

CONSUMER: Final = "consumer"
"""The protocol type of consumers; Kafka Connect and others have their own."""

NEWEST: Final = 3

NO_GENERATION: Final = -1

_OWNED_FROM: Final = 1
_GENERATION_FROM: Final = 2
_RACK_FROM: Final = 3


class Subscription(NamedTuple):
    """A consumer's topics. `owned`: its present partitions by topic; `generation`: in which it got them."""

    topics: Sequence[str]
    user_data: bytes | None = None
    owned: Mapping[str, Sequence[int]] = {}
    generation: int = NO_GENERATION
    rack_id: str | None = None
    version: int = NEWEST


class Assignment(NamedTuple):
    """A consumer's assigned partitions by topic."""

    partitions: Mapping[str, Sequence[int]]
    user_data: bytes | None = None
    version: int = NEWEST


def encode_subscription(value: Subscription) -> bytes:
    """Encode as `value.version`, without fields of later versions. Raises ValueError for a string that is too long."""
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
    """Decode a subscription of any version. Raises DecodeError."""
    reader = Reader(data)
    version = _version(reader)
    topics = _topics(reader)
    user_data = _nullable_bytes(reader)
    owned = _partitions(reader) if version >= _OWNED_FROM else {}
    generation = reader.int32() if version >= _GENERATION_FROM else NO_GENERATION
    rack_id = read_nullable_string(reader) if version >= _RACK_FROM else None
    return Subscription(topics, user_data, owned, generation, rack_id, version)


def subscribed_topics(metadata: bytes) -> frozenset[str]:
    """Decode only the topics of a subscription, which begin every version. Raises DecodeError."""
    reader = Reader(metadata)
    _version(reader)
    return frozenset(_topics(reader))


def encode_assignment(value: Assignment) -> bytes:
    """Encode an assignment; all versions have the same fields. Raises ValueError for a string that is too long."""
    writer = Writer().int16(value.version)
    _put_partitions(writer, value.partitions)
    return _put_nullable_bytes(writer, value.user_data).to_bytes()


def decode_assignment(data: bytes) -> Assignment:
    """Decode an assignment of any version; no bytes are no partitions. Raises DecodeError."""
    if not data:
        return Assignment({})
    reader = Reader(data)
    version = _version(reader)
    return Assignment(_partitions(reader), _nullable_bytes(reader), version)


def encode_assigned(partitions: Iterable[TopicPartition]) -> bytes:
    """Encode partitions as an assignment of version 0, by topic in the order of their first mention."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return encode_assignment(Assignment(by_topic, version=0))


def decode_assigned(data: bytes) -> tuple[TopicPartition, ...]:
    """Decode only the partitions of an assignment, in the order of the bytes. Raises DecodeError."""
    if not data:
        return ()
    reader = Reader(data)
    _version(reader)
    return tuple(TopicPartition(topic, number) for topic, numbers in _partitions(reader).items() for number in numbers)


def _version(reader: Reader) -> int:
    version = reader.int16()
    if version < 0:
        raise DecodeError(f"version {version} of the consumers' protocol is negative")
    return version


def _topics(reader: Reader) -> list[str]:
    return [read_string(reader) for _ in range(read_array_length(reader))]


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
        numbers = tuple([reader.int32() for _ in range(read_array_length(reader))])
        topics[topic] = (*topics.get(topic, ()), *numbers)
    return topics


def _put_nullable_bytes(writer: Writer, value: bytes | None) -> Writer:
    return writer.int32(-1) if value is None else write_bytes(writer, value)


def _nullable_bytes(reader: Reader) -> bytes | None:
    size_bytes = reader.int32()
    return None if size_bytes < 0 else reader.raw(size_bytes)
