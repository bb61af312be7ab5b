"""Values of the records of consumer groups (KIP-848); `consumer_group_keys` has the key of each.

    int16 version = 0 | fields, all flexible: compact strings and arrays, tagged fields at the end of every structure

    group               epoch int32; tag 0 metadata hash int64 (Kafka 4.1), omitted if 0
    member              instance id, rack id nullable string | client id, client host string | topics []string |
                        regex nullable string | rebalance timeout int32 ms | assignor nullable string;
                        tag 0: classic metadata (below) of a member that uses the classic protocol, or null
      classic           session timeout int32 ms | protocols [] of name string, metadata bytes
    target, whole       assignment epoch int32; tag 0 timestamp int64 ms (Kafka 4.3), omitted if 0
    target of a member  [] of topic id uuid, partitions []int32
    current             member epoch, previous member epoch int32 | state int8 | assigned, pending revocation:
                        [] of topic id uuid, partitions []int32; tag 0 assignment epochs nullable []int32
    expression          topics []string | version, timestamp int64

A tag begins with its size. A member of the consumer protocol has a null structure as tag 0 (one byte 0), because Kafka
takes a member without that tag for a classic member without protocols. Unknown tags are skipped.
Source: Kafka's messages of these names, GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.primitives import Reader, Writer

VERSION: Final = 0

_TAG: Final = 0
_NULL: Final = b"\x00"

Partitions: TypeAlias = Mapping[bytes, frozenset[int]]
"""By topic id."""

PartitionEpochs: TypeAlias = Mapping[bytes, Mapping[int, int]]
"""By topic id and partition: the member epoch in which it was assigned."""


class ConsumerGroupMetadataValue(NamedTuple):
    """`epoch` grows with every change that needs a new assignment. `metadata_hash`: of the group's topics, signed."""

    epoch: int
    metadata_hash: int = 0


class ClassicMemberMetadata(NamedTuple):
    """Data of a member that uses the classic protocol: `protocols` by name, in the order of its preference."""

    session_timeout_ms: int
    protocols: Sequence[tuple[str, bytes]]


class PartitionMetadataValue(NamedTuple):
    """The partition counts of topics, from Kafka before 4.1. Its content is not read, and it is never written."""


class MemberMetadataValue(NamedTuple):
    """A member's metadata, with sorted topics."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topic_names: Sequence[str]
    topic_regex: str | None
    rebalance_timeout_ms: int
    assignor: str | None
    classic: ClassicMemberMetadata | None = None


class TargetAssignmentMetadataValue(NamedTuple):
    """The group epoch of the target assignment, and when it was computed, in ms of wall time."""

    assignment_epoch: int
    timestamp_ms: int = 0


class TargetAssignmentMemberValue(NamedTuple):
    """A member's target assignment."""

    partitions: Partitions


class CurrentMemberAssignmentValue(NamedTuple):
    """A member's current assignment. `state`: 0 stable, 1 has partitions to revoke, 2 waits for others' partitions."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned: PartitionEpochs
    pending_revocation: PartitionEpochs


class RegularExpressionValue(NamedTuple):
    """The matching topics, at the metadata offset `version` and the time `timestamp_ms`."""

    topics: Sequence[str]
    version: int
    timestamp_ms: int


ConsumerGroupValue: TypeAlias = (
    ConsumerGroupMetadataValue
    | PartitionMetadataValue
    | MemberMetadataValue
    | TargetAssignmentMetadataValue
    | TargetAssignmentMemberValue
    | CurrentMemberAssignmentValue
    | RegularExpressionValue
)


def encode_consumer_group_value(value: ConsumerGroupValue) -> bytes:
    """Encode a value."""
    assert not isinstance(value, PartitionMetadataValue)
    writer = Writer().int16(VERSION)
    match value:
        case ConsumerGroupMetadataValue():
            writer.int32(value.epoch)
            _put_int64_tag(writer, value.metadata_hash)
        case MemberMetadataValue():
            _put_member(writer, value)
        case TargetAssignmentMetadataValue():
            writer.int32(value.assignment_epoch)
            _put_int64_tag(writer, value.timestamp_ms)
        case TargetAssignmentMemberValue():
            writer.compact_array_length(len(value.partitions))
            for topic_id, partitions in value.partitions.items():
                writer.uuid(topic_id).compact_array(sorted(partitions), writer.int32).tagged_fields()
            writer.tagged_fields()
        case CurrentMemberAssignmentValue():
            writer.int32(value.member_epoch).int32(value.previous_member_epoch).int8(value.state)
            _put_epochs(writer, value.assigned)
            _put_epochs(writer, value.pending_revocation)
            writer.tagged_fields()
        case RegularExpressionValue():
            writer.compact_array(value.topics, writer.compact_string)
            writer.int64(value.version).int64(value.timestamp_ms).tagged_fields()
    return writer.to_bytes()


def decode_consumer_group_metadata(data: bytes) -> ConsumerGroupMetadataValue:
    """Decode the group's epoch. Raises DecodeError, like all decoders here."""
    reader = _body(data)
    value = ConsumerGroupMetadataValue(reader.int32(), _int64_tag(reader))
    reader.ensure_end()
    return value


def decode_member_metadata(data: bytes) -> MemberMetadataValue:
    """Decode a member's metadata."""
    reader = _body(data)
    value = MemberMetadataValue(
        reader.compact_nullable_string(),
        reader.compact_nullable_string(),
        reader.compact_string(),
        reader.compact_string(),
        tuple(reader.compact_array(reader.compact_string)),
        reader.compact_nullable_string(),
        reader.int32(),
        reader.compact_nullable_string(),
    )
    tag = reader.tagged_fields().get(_TAG, _NULL)
    reader.ensure_end()
    return value if tag == _NULL else value._replace(classic=_classic(tag))


def decode_target_assignment_metadata(data: bytes) -> TargetAssignmentMetadataValue:
    """Decode the epoch of the target assignment."""
    reader = _body(data)
    value = TargetAssignmentMetadataValue(reader.int32(), _int64_tag(reader))
    reader.ensure_end()
    return value


def decode_target_assignment_member(data: bytes) -> TargetAssignmentMemberValue:
    """Decode a member's target assignment."""
    reader = _body(data)
    partitions = {}
    for _ in range(reader.compact_array_length()):
        topic_id = reader.uuid()
        partitions[topic_id] = frozenset(reader.compact_array(reader.int32))
        reader.tagged_fields()
    reader.tagged_fields()
    reader.ensure_end()
    return TargetAssignmentMemberValue(partitions)


def decode_current_member_assignment(data: bytes) -> CurrentMemberAssignmentValue:
    """Decode a member's current assignment. Partitions without epochs (Kafka before 4.2) get the member epoch."""
    reader = _body(data)
    member_epoch, previous, state = reader.int32(), reader.int32(), reader.int8()
    default = max(member_epoch, 0)  # a static member that left for a while has epoch -2
    assigned, pending = _epochs(reader, default), _epochs(reader, default)
    reader.tagged_fields()
    reader.ensure_end()
    return CurrentMemberAssignmentValue(member_epoch, previous, state, assigned, pending)


def decode_regular_expression(data: bytes) -> RegularExpressionValue:
    """Decode the topics of an expression."""
    reader = _body(data)
    value = RegularExpressionValue(tuple(reader.compact_array(reader.compact_string)), reader.int64(), reader.int64())
    reader.tagged_fields()
    reader.ensure_end()
    return value


def _body(data: bytes) -> Reader:
    reader = Reader(data)
    version = reader.int16()
    if version != VERSION:
        raise DecodeError(f"version {version} of a consumer group's record is not {VERSION}")
    return reader


def _put_int64_tag(writer: Writer, value: int) -> None:
    writer.tagged_fields({} if value == 0 else {_TAG: Writer().int64(value).to_bytes()})


def _int64_tag(reader: Reader) -> int:
    data = reader.tagged_fields().get(_TAG)
    return 0 if data is None else Reader(data).int64()


def _put_member(writer: Writer, value: MemberMetadataValue) -> None:
    writer.compact_nullable_string(value.instance_id).compact_nullable_string(value.rack_id)
    writer.compact_string(value.client_id).compact_string(value.client_host)
    writer.compact_array(value.topic_names, writer.compact_string).compact_nullable_string(value.topic_regex)
    writer.int32(value.rebalance_timeout_ms).compact_nullable_string(value.assignor)
    tag = _NULL
    if value.classic is not None:
        part = Writer().unsigned_varint(1).int32(value.classic.session_timeout_ms)
        part.compact_array_length(len(value.classic.protocols))
        for name, metadata in value.classic.protocols:
            part.compact_string(name).compact_bytes(metadata).tagged_fields()
        tag = part.tagged_fields().to_bytes()
    writer.tagged_fields({_TAG: tag})


def _classic(data: bytes) -> ClassicMemberMetadata:
    reader = Reader(data)
    if reader.unsigned_varint() != 1:
        raise DecodeError("the metadata of a classic member is neither present nor null")
    session_timeout_ms = reader.int32()
    protocols = []
    for _ in range(reader.compact_array_length()):
        protocols.append((reader.compact_string(), reader.compact_bytes()))
        reader.tagged_fields()
    reader.tagged_fields()
    return ClassicMemberMetadata(session_timeout_ms, tuple(protocols))


def _put_epochs(writer: Writer, topics: PartitionEpochs) -> None:
    writer.compact_array_length(len(topics))
    for topic_id, epochs in topics.items():
        numbers = sorted(epochs)
        part = Writer()
        part.compact_array([epochs[number] for number in numbers], part.int32)
        tags = {_TAG: part.to_bytes()} if numbers else {}
        writer.uuid(topic_id).compact_array(numbers, writer.int32).tagged_fields(tags)


def _epochs(reader: Reader, default: int) -> PartitionEpochs:
    topics = {}
    for _ in range(reader.compact_array_length()):
        topic_id, numbers = reader.uuid(), reader.compact_array(reader.int32)
        tag = reader.tagged_fields().get(_TAG)
        epochs = None
        if tag is not None:
            part = Reader(tag)
            epochs = part.compact_nullable_array(part.int32)
        if epochs is None or len(epochs) != len(numbers):
            epochs = [default] * len(numbers)
        topics[topic_id] = dict(zip(numbers, epochs, strict=True))
    return topics
