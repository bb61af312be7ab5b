"""Records of the metadata log, one class each: their fields and their bytes after the frame's header.

    key  record               version  fields (flexible: compact strings and arrays, then tagged fields)
    2    Topic                0        name, topic id
    3    Partition            0-2      partition int32, topic id, replicas, isr, removing, adding []int32, leader,
                                       leader epoch, partition epoch int32, directories []uuid (from 1);
                                       tags 0 recovery state int8, 1 and 2 eligible leaders []int32 (from 2)
    4    Config               0        resource type int8, resource name, name, value or null
    5    PartitionChange      0-2      partition int32, topic id; tags 0 isr, 1 leader, 2 replicas, 3 removing,
                                       4 adding, 5 recovery state, 8 directories (from 1), 6 and 7 eligible leaders
    9    RemoveTopic          0        topic id
    12   FeatureLevel         0        name, level int16
    15   ProducerIds          0        broker id int32, broker epoch int64, next producer id int64
    23   BeginTransaction     0        tag 0 name
    24   EndTransaction       0
    25   AbortTransaction     0        tag 0 reason
    28   ClearElr             0        topic name, "" for all

Keys 10, 11, 14, 18, 19, 22 and 26 are in security_records. Unknown tagged fields are skipped.
Source: the JSON definitions in Kafka's kafka-metadata jar.
"""

# Without `from __future__ import annotations`: NamedTuple would compile each field's annotation at every start.

from functools import lru_cache
from typing import NamedTuple, Self, TypeAlias

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.metadata.partition_state import (
    NO_LEADER_CHANGE,
    RECOVERY_UNCHANGED,
    PartitionDelta,
    PartitionState,
)
from barnabas.protocol.metadata.security_records import SecurityRecord
from barnabas.protocol.primitives import Reader, Writer

BROKER_RESOURCE = 4
CLIENT_METRICS_RESOURCE = 16
GROUP_RESOURCE = 32
TOPIC_RESOURCE = 2

_SHARED_STATES = 4096
"""Distinct tails of partition records in the cache; one node rarely has more than a handful."""

_PARTITION_AND_TOPIC_SIZE = 4 + 16


class TopicRecord(NamedTuple):
    """Creation of a topic; its partitions follow."""

    name: str
    topic_id: bytes

    def encode(self, version: int) -> bytes:
        """Encode the message after the frame's header."""
        return Writer().compact_string(self.name).uuid(self.topic_id).tagged_fields().to_bytes()

    @classmethod
    def decode_whole(cls, version: int, body: bytes) -> Self:
        """Decode the message. Raises DecodeError."""
        reader = Reader(body)
        record = cls(reader.compact_string(), reader.uuid())
        _end(reader)
        return record


class PartitionRecord(NamedTuple):
    """Creation of a partition, or its state in a snapshot."""

    partition: int
    topic_id: bytes
    state: PartitionState

    def encode(self, version: int) -> bytes:
        """Encode the message after the frame's header, without the fields that `version` lacks."""
        return self.partition.to_bytes(4, "big", signed=True) + self.topic_id + _encode_state(self.state, version)

    @classmethod
    def decode_whole(cls, version: int, body: bytes) -> Self:
        """Decode the message. Raises DecodeError."""
        partition, topic_id, tail = _split_partition(body)
        return cls(partition, topic_id, _decode_state(tail, version))


class ConfigRecord(NamedTuple):
    """A config of a topic (type 2), a broker (type 4, name "" = all brokers) or a group (32); value None deletes it."""

    resource_type: int
    resource_name: str
    name: str
    value: str | None

    def encode(self, version: int) -> bytes:
        """Encode the message after the frame's header."""
        writer = Writer().int8(self.resource_type).compact_string(self.resource_name).compact_string(self.name)
        return writer.compact_nullable_string(self.value).tagged_fields().to_bytes()

    @classmethod
    def decode_whole(cls, version: int, body: bytes) -> Self:
        """Decode the message. Raises DecodeError."""
        reader = Reader(body)
        record = cls(reader.int8(), reader.compact_string(), reader.compact_string(), reader.compact_nullable_string())
        _end(reader)
        return record


class PartitionChangeRecord(NamedTuple):
    """Change of some fields of a partition. A given leader raises the leader epoch, even if it is the same."""

    partition: int
    topic_id: bytes
    delta: PartitionDelta

    def encode(self, version: int) -> bytes:
        """Encode the message after the frame's header, without the fields that `version` lacks."""
        return self.partition.to_bytes(4, "big", signed=True) + self.topic_id + _encode_delta(self.delta, version)

    @classmethod
    def decode_whole(cls, version: int, body: bytes) -> Self:
        """Decode the message. Raises DecodeError."""
        partition, topic_id, tail = _split_partition(body)
        return cls(partition, topic_id, _decode_delta(tail, version))


class RemoveTopicRecord(NamedTuple):
    """Deletion of a topic with its partitions and configs."""

    topic_id: bytes

    def encode(self, version: int) -> bytes:
        """Encode the message after the frame's header."""
        return Writer().uuid(self.topic_id).tagged_fields().to_bytes()

    @classmethod
    def decode_whole(cls, version: int, body: bytes) -> Self:
        """Decode the message. Raises DecodeError."""
        reader = Reader(body)
        record = cls(reader.uuid())
        _end(reader)
        return record


class FeatureLevelRecord(NamedTuple):
    """The level of a feature; 0 removes it."""

    name: str
    level: int

    def encode(self, version: int) -> bytes:
        """Encode the message after the frame's header."""
        return Writer().compact_string(self.name).int16(self.level).tagged_fields().to_bytes()

    @classmethod
    def decode_whole(cls, version: int, body: bytes) -> Self:
        """Decode the message. Raises DecodeError."""
        reader = Reader(body)
        record = cls(reader.compact_string(), reader.int16())
        _end(reader)
        return record


class ProducerIdsRecord(NamedTuple):
    """Allocation of a block of producer ids: `next_producer_id` is the first of the next block."""

    broker_id: int
    broker_epoch: int
    next_producer_id: int

    def encode(self, version: int) -> bytes:
        """Encode the message after the frame's header."""
        writer = Writer().int32(self.broker_id).int64(self.broker_epoch).int64(self.next_producer_id)
        return writer.tagged_fields().to_bytes()

    @classmethod
    def decode_whole(cls, version: int, body: bytes) -> Self:
        """Decode the message. Raises DecodeError."""
        reader = Reader(body)
        record = cls(reader.int32(), reader.int64(), reader.int64())
        _end(reader)
        return record


class BeginTransactionRecord(NamedTuple):
    """Start of a transaction: the following records apply when it ends, or not at all."""

    name: str | None = None

    def encode(self, version: int) -> bytes:
        """Encode the message after the frame's header."""
        return _encode_tagged_text(self.name)

    @classmethod
    def decode_whole(cls, version: int, body: bytes) -> Self:
        """Decode the message. Raises DecodeError."""
        return cls(_decode_tagged_text(body))


class EndTransactionRecord(NamedTuple):
    """End of a transaction: the records since BeginTransaction apply."""

    def encode(self, version: int) -> bytes:
        """Encode the message after the frame's header."""
        return Writer().tagged_fields().to_bytes()

    @classmethod
    def decode_whole(cls, version: int, body: bytes) -> Self:
        """Decode the message. Raises DecodeError."""
        _end(Reader(body))
        return cls()


class AbortTransactionRecord(NamedTuple):
    """Abort of a transaction: the records since BeginTransaction never apply."""

    reason: str | None = None

    def encode(self, version: int) -> bytes:
        """Encode the message after the frame's header."""
        return _encode_tagged_text(self.reason)

    @classmethod
    def decode_whole(cls, version: int, body: bytes) -> Self:
        """Decode the message. Raises DecodeError."""
        return cls(_decode_tagged_text(body))


class ClearElrRecord(NamedTuple):
    """Removal of the eligible leaders of a topic's partitions, of all topics if the name is empty."""

    topic: str

    def encode(self, version: int) -> bytes:
        """Encode the message after the frame's header."""
        return Writer().compact_string(self.topic).tagged_fields().to_bytes()

    @classmethod
    def decode_whole(cls, version: int, body: bytes) -> Self:
        """Decode the message. Raises DecodeError."""
        reader = Reader(body)
        record = cls(reader.compact_string())
        _end(reader)
        return record


class UnknownRecord(NamedTuple):
    """A record with an unserved key (registrations, migration state, ...), kept unchanged."""

    key: int
    version: int
    body: bytes


ServedRecord: TypeAlias = (
    TopicRecord
    | PartitionRecord
    | ConfigRecord
    | PartitionChangeRecord
    | RemoveTopicRecord
    | FeatureLevelRecord
    | ProducerIdsRecord
    | BeginTransactionRecord
    | EndTransactionRecord
    | AbortTransactionRecord
    | ClearElrRecord
    | SecurityRecord
)
"""Records that Barnabas writes or applies."""

MetadataRecord: TypeAlias = ServedRecord | UnknownRecord


def _end(reader: Reader) -> None:
    reader.tagged_fields()
    reader.ensure_end()


def _split_partition(body: bytes) -> tuple[int, bytes, bytes]:
    if len(body) < _PARTITION_AND_TOPIC_SIZE:
        raise DecodeError(f"partition record has {len(body)} bytes, fewer than {_PARTITION_AND_TOPIC_SIZE}")
    partition = int.from_bytes(body[:4], "big", signed=True)
    return partition, body[4:_PARTITION_AND_TOPIC_SIZE], body[_PARTITION_AND_TOPIC_SIZE:]


@lru_cache(maxsize=_SHARED_STATES)
def _encode_state(state: PartitionState, version: int) -> bytes:
    writer = Writer()
    for nodes in (state.replicas, state.isr, state.removing, state.adding):
        writer.compact_array(nodes, writer.int32)
    writer.int32(state.leader).int32(state.leader_epoch).int32(state.partition_epoch)
    if version >= 1:
        writer.compact_array(state.directories, writer.uuid)
    tags: dict[int, bytes] = {}
    if state.leader_recovery_state:
        tags[0] = Writer().int8(state.leader_recovery_state).to_bytes()
    if version >= 2:
        _put_nodes(tags, 1, state.eligible_leaders)
        _put_nodes(tags, 2, state.last_known_eligible)
    return writer.tagged_fields(tags).to_bytes()


@lru_cache(maxsize=_SHARED_STATES)
def _decode_state(tail: bytes, version: int) -> PartitionState:
    reader = Reader(tail)
    replicas, isr, removing, adding = (tuple(reader.compact_array(reader.int32)) for _ in range(4))
    leader, leader_epoch, partition_epoch = reader.int32(), reader.int32(), reader.int32()
    directories = tuple(reader.compact_array(reader.uuid)) if version >= 1 else ()
    tags = reader.tagged_fields()
    reader.ensure_end()
    return PartitionState(
        replicas=replicas,
        isr=isr,
        leader=leader,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        directories=directories,
        removing=removing,
        adding=adding,
        leader_recovery_state=_int8(tags.get(0), 0),
        eligible_leaders=_nodes(tags.get(1)) if version >= 2 else None,
        last_known_eligible=_nodes(tags.get(2)) if version >= 2 else None,
    )


@lru_cache(maxsize=_SHARED_STATES)
def _encode_delta(delta: PartitionDelta, version: int) -> bytes:
    tags: dict[int, bytes] = {}
    _put_nodes(tags, 0, delta.isr)
    if delta.leader != NO_LEADER_CHANGE:
        tags[1] = Writer().int32(delta.leader).to_bytes()
    _put_nodes(tags, 2, delta.replicas)
    _put_nodes(tags, 3, delta.removing)
    _put_nodes(tags, 4, delta.adding)
    if delta.leader_recovery_state != RECOVERY_UNCHANGED:
        tags[5] = Writer().int8(delta.leader_recovery_state).to_bytes()
    if version >= 2:
        _put_nodes(tags, 6, delta.eligible_leaders)
        _put_nodes(tags, 7, delta.last_known_eligible)
    if version >= 1 and delta.directories is not None:
        writer = Writer()
        tags[8] = writer.compact_array(delta.directories, writer.uuid).to_bytes()
    return Writer().tagged_fields(tags).to_bytes()


@lru_cache(maxsize=_SHARED_STATES)
def _decode_delta(tail: bytes, version: int) -> PartitionDelta:
    reader = Reader(tail)
    tags = reader.tagged_fields()
    reader.ensure_end()
    return PartitionDelta(
        isr=_nodes(tags.get(0)),
        leader=_int32(tags.get(1), NO_LEADER_CHANGE),
        replicas=_nodes(tags.get(2)),
        removing=_nodes(tags.get(3)),
        adding=_nodes(tags.get(4)),
        leader_recovery_state=_int8(tags.get(5), RECOVERY_UNCHANGED),
        eligible_leaders=_nodes(tags.get(6)) if version >= 2 else None,
        last_known_eligible=_nodes(tags.get(7)) if version >= 2 else None,
        directories=_uuids(tags.get(8)) if version >= 1 else None,
    )


def _put_nodes(tags: dict[int, bytes], tag: int, nodes: tuple[int, ...] | None) -> None:
    if nodes is not None:
        writer = Writer()
        tags[tag] = writer.compact_array(nodes, writer.int32).to_bytes()


def _nodes(field: bytes | None) -> tuple[int, ...] | None:
    if field is None:
        return None
    reader = Reader(field)
    nodes = reader.compact_nullable_array(reader.int32)
    reader.ensure_end()
    return None if nodes is None else tuple(nodes)


def _uuids(field: bytes | None) -> tuple[bytes, ...] | None:
    if field is None:
        return None
    reader = Reader(field)
    ids = reader.compact_nullable_array(reader.uuid)
    reader.ensure_end()
    return None if ids is None else tuple(ids)


def _int8(field: bytes | None, default: int) -> int:
    return default if field is None else Reader(field).int8()


def _int32(field: bytes | None, default: int) -> int:
    return default if field is None else Reader(field).int32()


def _encode_tagged_text(text: str | None) -> bytes:
    tags = {} if text is None else {0: Writer().compact_nullable_string(text).to_bytes()}
    return Writer().tagged_fields(tags).to_bytes()


def _decode_tagged_text(body: bytes) -> str | None:
    reader = Reader(body)
    field = reader.tagged_fields().get(0)
    reader.ensure_end()
    return None if field is None else Reader(field).compact_nullable_string()
