"""Keys of the records of groups of the newer consumer protocol (KIP-848), behind the int16 version of every key.

    version  key                              fields                     value (`consumer_group_values`)
    3        ConsumerGroupMetadata            group string               the group's epoch
    4        ConsumerGroupPartitionMetadata   group string               not written since Kafka 4.1; tombstones only
    5        ConsumerGroupMemberMetadata      group, member id string    what a member says of itself
    6        ...TargetAssignmentMetadata      group string               the epoch of the target assignment
    7        ...TargetAssignmentMember        group, member id string    what a member shall have
    8        ...CurrentMemberAssignment       group, member id string    what a member has, and its epoch
    16       ConsumerGroupRegularExpression   group, regex string        the topics that an expression matched

Source: Kafka's CoordinatorRecordType and the key messages of those names.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from barnabas.protocol.groups.classic_fields import read_string, write_string
from barnabas.protocol.primitives import Reader, Writer


class ConsumerGroupMetadataKey(NamedTuple):
    """A consumer group: there as long as this record is."""

    group: str


class ConsumerGroupPartitionMetadataKey(NamedTuple):
    """The partitions of a group's topics, as Kafka before 4.1 kept them."""

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
    """What a member has now."""

    group: str
    member_id: str


class RegularExpressionKey(NamedTuple):
    """An expression that members of the group subscribe with."""

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
    """The key's bytes. Raises ValueError for a string above 32,767 bytes."""
    writer = Writer().int16(_VERSIONS[type(key)])
    for text in key:
        write_string(writer, text)
    return writer.to_bytes()


def decode_consumer_group_key(version: int, reader: Reader) -> ConsumerGroupKey | None:
    """The key whose `version` was read; None for a version that is none of these. Raises DecodeError."""
    of_group = _OF_GROUPS.get(version)
    if of_group is not None:
        return of_group(read_string(reader))
    of_part = _OF_PARTS.get(version)
    return None if of_part is None else of_part(read_string(reader), read_string(reader))
