"""Keys of the records of consumer groups (KIP-848), after the int16 version of every key.

    version  key                              fields                     value (`consumer_group_values`)
    3        ConsumerGroupMetadata            group string               the group's epoch
    4        ConsumerGroupPartitionMetadata   group string               not written since Kafka 4.1; tombstones only
    5        ConsumerGroupMemberMetadata      group, member id string    a member's metadata
    6        ...TargetAssignmentMetadata      group string               the epoch of the target assignment
    7        ...TargetAssignmentMember        group, member id string    a member's target assignment
    8        ...CurrentMemberAssignment       group, member id string    a member's current assignment and epoch
    16       ConsumerGroupRegularExpression   group, regex string        the topics that an expression matches

Source: Kafka's CoordinatorRecordType and the key messages of those names.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from barnabas.protocol.groups.classic_fields import read_string, write_string
from barnabas.protocol.primitives import Reader, Writer


class ConsumerGroupMetadataKey(NamedTuple):
    """A consumer group; its tombstone deletes the group."""

    group: str


class ConsumerGroupPartitionMetadataKey(NamedTuple):
    """The partition counts of a group's topics, as Kafka before 4.1 stored them."""

    group: str


class ConsumerGroupMemberMetadataKey(NamedTuple):
    """A member of a consumer group."""

    group: str
    member_id: str


class TargetAssignmentMetadataKey(NamedTuple):
    """The target assignment of a group as a whole."""

    group: str


class TargetAssignmentMemberKey(NamedTuple):
    """One member's part of the target assignment."""

    group: str
    member_id: str


class CurrentMemberAssignmentKey(NamedTuple):
    """A member's current assignment."""

    group: str
    member_id: str


class RegularExpressionKey(NamedTuple):
    """An expression with which members of the group subscribe."""

    group: str
    regular_expression: str


ConsumerGroupKey: TypeAlias = (
    ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | TargetAssignmentMetadataKey
    | TargetAssignmentMemberKey
    | CurrentMemberAssignmentKey
    | RegularExpressionKey
)

_GroupKind: TypeAlias = (
    type[ConsumerGroupMetadataKey] | type[ConsumerGroupPartitionMetadataKey] | type[TargetAssignmentMetadataKey]
)
_PartKind: TypeAlias = (
    type[ConsumerGroupMemberMetadataKey]
    | type[TargetAssignmentMemberKey]
    | type[CurrentMemberAssignmentKey]
    | type[RegularExpressionKey]
)

_OF_GROUPS: Final[dict[int, _GroupKind]] = {
    3: ConsumerGroupMetadataKey,
    4: ConsumerGroupPartitionMetadataKey,
    6: TargetAssignmentMetadataKey,
}
_OF_PARTS: Final[dict[int, _PartKind]] = {
    5: ConsumerGroupMemberMetadataKey,
    7: TargetAssignmentMemberKey,
    8: CurrentMemberAssignmentKey,
    16: RegularExpressionKey,
}
_VERSIONS: Final[dict[type, int]] = {kind: version for version, kind in (*_OF_GROUPS.items(), *_OF_PARTS.items())}


def encode_consumer_group_key(key: ConsumerGroupKey) -> bytes:
    """Encode a key. Raises ValueError for a string above 32,767 bytes."""
    writer = Writer().int16(_VERSIONS[type(key)])
    for text in key:
        write_string(writer, text)
    return writer.to_bytes()


def decode_consumer_group_key(version: int, reader: Reader) -> ConsumerGroupKey | None:
    """Decode a key after its `version`; None for another version than these. Raises DecodeError."""
    of_group = _OF_GROUPS.get(version)
    if of_group is not None:
        return of_group(read_string(reader))
    of_part = _OF_PARTS.get(version)
    return None if of_part is None else of_part(read_string(reader), read_string(reader))
