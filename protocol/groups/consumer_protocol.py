"""The embedded protocol of consumers: subscription and assignment in a JoinGroup and a SyncGroup of type `consumer`.

Both begin with an int16 version; no field is flexible. Versions above 3 begin like 3, and every reader accepts them. A
member without an assignment may get no bytes at all. Source: Kafka's ConsumerProtocolSubscription,
ConsumerProtocolAssignment and ConsumerProtocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.wire.fields import since
from barnabas.protocol.wire.records import HEAD_SIZE, RecordValue, head_of
from barnabas.protocol.wire.structures import Struct
from barnabas.protocol.wire.types import Int32, NullableBytes, NullableString, String

CONSUMER: Final = "consumer"
"""The protocol type of consumers; Kafka Connect and others have their own."""

NEWEST: Final = 3

NO_GENERATION: Final = -1


class PartitionsOfTopic(Struct, frozen=True, kw_only=False):
    """Partitions of one topic."""

    topic: String
    partitions: tuple[Int32, ...]


class ConsumerProtocolSubscription(RecordValue, newest=NEWEST, frozen=True):
    """A consumer's topics, and its present partitions with the generation in which it got them."""

    topics: tuple[String, ...]
    user_data: NullableBytes = None
    owned_partitions: tuple[PartitionsOfTopic, ...] = since(1, default=())
    generation_id: Int32 = since(2, default=NO_GENERATION)
    rack_id: NullableString = since(3, default=None)


class ConsumerProtocolAssignment(RecordValue, newest=NEWEST, frozen=True):
    """A consumer's assigned partitions."""

    assigned_partitions: tuple[PartitionsOfTopic, ...]
    user_data: NullableBytes = None


class _Topics(RecordValue, newest=NEWEST, frozen=True):
    """What begins every subscription."""

    topics: tuple[String, ...]


class _Partitions(RecordValue, newest=NEWEST, frozen=True):
    """What begins every assignment."""

    assigned_partitions: tuple[PartitionsOfTopic, ...]


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
    subscription = ConsumerProtocolSubscription(
        topics=tuple(value.topics),
        user_data=value.user_data,
        owned_partitions=_rows(value.owned),
        generation_id=value.generation,
        rack_id=value.rack_id,
    )
    return _encode(subscription, value.version)


def decode_subscription(data: bytes) -> Subscription:
    """Decode a subscription of any version. Raises DecodeError."""
    version = _version(data)
    value = ConsumerProtocolSubscription.decode(min(version, NEWEST), data, len(data))
    owned = _by_topic(value.owned_partitions)
    return Subscription(list(value.topics), value.user_data, owned, value.generation_id, value.rack_id, version)


def subscribed_topics(metadata: bytes) -> frozenset[str]:
    """Decode only the topics of a subscription, which begin every version. Raises DecodeError."""
    _version(metadata)
    return frozenset(_Topics.decode(0, metadata, len(metadata)).topics)


def encode_assignment(value: Assignment) -> bytes:
    """Encode an assignment; all versions have the same fields. Raises ValueError for a string that is too long."""
    assignment = ConsumerProtocolAssignment(assigned_partitions=_rows(value.partitions), user_data=value.user_data)
    return _encode(assignment, value.version)


def decode_assignment(data: bytes) -> Assignment:
    """Decode an assignment of any version; no bytes are no partitions. Raises DecodeError."""
    if not data:
        return Assignment({})
    version = _version(data)
    value = ConsumerProtocolAssignment.decode(min(version, NEWEST), data, len(data))
    return Assignment(_by_topic(value.assigned_partitions), value.user_data, version)


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
    _version(data)
    topics = _by_topic(_Partitions.decode(0, data, len(data)).assigned_partitions)
    return tuple(TopicPartition(topic, number) for topic, numbers in topics.items() for number in numbers)


def _version(data: bytes) -> int:
    version = head_of(data)
    if version < 0:
        raise DecodeError(f"version {version} of the consumers' protocol is negative")
    return version


def _encode(value: RecordValue, version: int) -> bytes:
    data = value.encode(min(version, NEWEST))  # not one generated encoder for each version that clients invent
    return data if version <= NEWEST else version.to_bytes(HEAD_SIZE, "big") + data[HEAD_SIZE:]


def _rows(topics: Mapping[str, Sequence[int]]) -> tuple[PartitionsOfTopic, ...]:
    return tuple([PartitionsOfTopic(topic, tuple(partitions)) for topic, partitions in topics.items()])


def _by_topic(rows: Iterable[PartitionsOfTopic]) -> dict[str, Sequence[int]]:
    topics: dict[str, list[int]] = {}
    for each in rows:
        topics.setdefault(each.topic, []).extend(each.partitions)
    return {topic: tuple(partitions) for topic, partitions in topics.items()}
