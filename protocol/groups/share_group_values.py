"""Values of the records of share groups (KIP-932); `share_group_keys` has the key of each.

    int16 version = 0 | fields, all flexible: compact strings and arrays, tagged fields at the end of every structure

    group               epoch int32 | metadata hash int64
    member              rack id nullable string | client id, client host string | topics []string
    target, whole       assignment epoch int32; tag 0 timestamp int64 ms (Kafka 4.3), omitted if 0
    target of a member  [] of topic id uuid, partitions []int32
    current             member epoch, previous member epoch int32 | state int8 | assigned: [] as in a target
    state partitions    initializing, initialized: [] of topic id uuid, topic name string, partitions []int32 |
                        deleting: [] of topic id uuid, topic name string

A tag begins with its size. Unknown tags are skipped. Source: Kafka's messages of these names,
GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.groups.consumer_group_values import Partitions
from barnabas.protocol.primitives import Reader, Writer

VERSION: Final = 0

_TIMESTAMP_TAG: Final = 0


class ShareGroupMetadataValue(NamedTuple):
    """`epoch` grows with every change that needs a new assignment. `metadata_hash`: of the group's topics, signed."""

    epoch: int
    metadata_hash: int = 0


class ShareMemberMetadataValue(NamedTuple):
    """A member's metadata, with sorted topics."""

    rack_id: str | None
    client_id: str
    client_host: str
    topic_names: Sequence[str]


class ShareTargetMetadataValue(NamedTuple):
    """The group epoch of the target assignment, and when it was computed, in ms of wall time."""

    assignment_epoch: int
    timestamp_ms: int = 0


class ShareTargetMemberValue(NamedTuple):
    """A member's target assignment."""

    partitions: Partitions


class ShareCurrentAssignmentValue(NamedTuple):
    """A member's current assignment. `state` is always 0, stable: partitions are shared, so none is revoked first."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned: Partitions


class StateTopic(NamedTuple):
    """Partitions of a topic, and the topic's name when they were recorded."""

    name: str
    partitions: frozenset[int]


class ShareStatePartitionsValue(NamedTuple):
    """The state of which partitions is being initialized or is initialized, and of which topics it is being deleted.

    All by topic id; `deleting` has the topics' names.
    """

    initializing: Mapping[bytes, StateTopic]
    initialized: Mapping[bytes, StateTopic]
    deleting: Mapping[bytes, str]


ShareGroupValue: TypeAlias = (
    ShareGroupMetadataValue
    | ShareMemberMetadataValue
    | ShareTargetMetadataValue
    | ShareTargetMemberValue
    | ShareCurrentAssignmentValue
    | ShareStatePartitionsValue
)


def encode_share_group_value(value: ShareGroupValue) -> bytes:
    """Encode a value."""
    writer = Writer().int16(VERSION)
    match value:
        case ShareGroupMetadataValue():
            writer.int32(value.epoch).int64(value.metadata_hash).tagged_fields()
        case ShareMemberMetadataValue():
            writer.compact_nullable_string(value.rack_id).compact_string(value.client_id)
            writer.compact_string(value.client_host)
            writer.compact_array(value.topic_names, writer.compact_string).tagged_fields()
        case ShareTargetMetadataValue():
            writer.int32(value.assignment_epoch)
            stamp = {_TIMESTAMP_TAG: Writer().int64(value.timestamp_ms).to_bytes()} if value.timestamp_ms else {}
            writer.tagged_fields(stamp)
        case ShareTargetMemberValue():
            _put_partitions(writer, value.partitions)
            writer.tagged_fields()
        case ShareCurrentAssignmentValue():
            writer.int32(value.member_epoch).int32(value.previous_member_epoch).int8(value.state)
            _put_partitions(writer, value.assigned)
            writer.tagged_fields()
        case ShareStatePartitionsValue():
            _put_state_topics(writer, value.initializing)
            _put_state_topics(writer, value.initialized)
            writer.compact_array_length(len(value.deleting))
            for topic_id, name in value.deleting.items():
                writer.uuid(topic_id).compact_string(name).tagged_fields()
            writer.tagged_fields()
    return writer.to_bytes()


def decode_share_group_metadata(data: bytes) -> ShareGroupMetadataValue:
    """Decode the group's epoch. Raises DecodeError, like all decoders here."""
    reader = _body(data)
    value = ShareGroupMetadataValue(reader.int32(), reader.int64())
    _end(reader)
    return value


def decode_share_member_metadata(data: bytes) -> ShareMemberMetadataValue:
    """Decode a member's metadata."""
    reader = _body(data)
    value = ShareMemberMetadataValue(
        reader.compact_nullable_string(),
        reader.compact_string(),
        reader.compact_string(),
        tuple(reader.compact_array(reader.compact_string)),
    )
    _end(reader)
    return value


def decode_share_target_metadata(data: bytes) -> ShareTargetMetadataValue:
    """Decode the epoch of the target assignment."""
    reader = _body(data)
    epoch = reader.int32()
    stamp = reader.tagged_fields().get(_TIMESTAMP_TAG)
    reader.ensure_end()
    return ShareTargetMetadataValue(epoch, 0 if stamp is None else Reader(stamp).int64())


def decode_share_target_member(data: bytes) -> ShareTargetMemberValue:
    """Decode a member's target assignment."""
    reader = _body(data)
    value = ShareTargetMemberValue(_partitions(reader))
    _end(reader)
    return value


def decode_share_current_assignment(data: bytes) -> ShareCurrentAssignmentValue:
    """Decode a member's current assignment."""
    reader = _body(data)
    value = ShareCurrentAssignmentValue(reader.int32(), reader.int32(), reader.int8(), _partitions(reader))
    _end(reader)
    return value


def decode_share_state_partitions(data: bytes) -> ShareStatePartitionsValue:
    """Decode the partitions with state."""
    reader = _body(data)
    initializing, initialized = _state_topics(reader), _state_topics(reader)
    deleting = {}
    for _ in range(reader.compact_array_length()):
        topic_id = reader.uuid()
        deleting[topic_id] = reader.compact_string()
        reader.tagged_fields()
    _end(reader)
    return ShareStatePartitionsValue(initializing, initialized, deleting)


def _body(data: bytes) -> Reader:
    reader = Reader(data)
    version = reader.int16()
    if version != VERSION:
        raise DecodeError(f"version {version} of a share group's record is not {VERSION}")
    return reader


def _end(reader: Reader) -> None:
    reader.tagged_fields()
    reader.ensure_end()


def _put_partitions(writer: Writer, topics: Partitions) -> None:
    writer.compact_array_length(len(topics))
    for topic_id, partitions in topics.items():
        writer.uuid(topic_id).compact_array(sorted(partitions), writer.int32).tagged_fields()


def _partitions(reader: Reader) -> Partitions:
    topics = {}
    for _ in range(reader.compact_array_length()):
        topic_id = reader.uuid()
        topics[topic_id] = frozenset(reader.compact_array(reader.int32))
        reader.tagged_fields()
    return topics


def _put_state_topics(writer: Writer, topics: Mapping[bytes, StateTopic]) -> None:
    writer.compact_array_length(len(topics))
    for topic_id, topic in topics.items():
        writer.uuid(topic_id).compact_string(topic.name)
        writer.compact_array(sorted(topic.partitions), writer.int32).tagged_fields()


def _state_topics(reader: Reader) -> dict[bytes, StateTopic]:
    topics = {}
    for _ in range(reader.compact_array_length()):
        topic_id, name = reader.uuid(), reader.compact_string()
        topics[topic_id] = StateTopic(name, frozenset(reader.compact_array(reader.int32)))
        reader.tagged_fields()
    return topics
