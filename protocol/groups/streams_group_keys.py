"""Keys of the records of streams groups (KIP-1071), after the int16 version of every key.

    version  key                                  fields                     value (`streams_group_values`)
    17       StreamsGroupMetadata                 group string               the group's epoch
    19       StreamsGroupMemberMetadata           group, member id string    a member's metadata
    20       StreamsGroupTargetAssignmentMetadata group string               the epoch of the target assignment
    21       StreamsGroupTargetAssignmentMember   group, member id string    a member's target assignment
    22       StreamsGroupCurrentMemberAssignment  group, member id string    a member's current assignment and epoch
    23       StreamsGroupTopology                 group string               the topology of the application

Source: Kafka's CoordinatorRecordType and the key messages of those names.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from barnabas.protocol.groups.classic_fields import read_string, write_string
from barnabas.protocol.primitives import Reader, Writer


class StreamsGroupMetadataKey(NamedTuple):
    """A streams group; its tombstone deletes the group."""

    group: str


class StreamsGroupMemberMetadataKey(NamedTuple):
    """A member of a streams group."""

    group: str
    member_id: str


class StreamsTargetAssignmentMetadataKey(NamedTuple):
    """The target assignment of a group as a whole."""

    group: str


class StreamsTargetAssignmentMemberKey(NamedTuple):
    """One member's part of the target assignment."""

    group: str
    member_id: str


class StreamsCurrentMemberAssignmentKey(NamedTuple):
    """A member's current assignment."""

    group: str
    member_id: str


class StreamsGroupTopologyKey(NamedTuple):
    """The topology of a group."""

    group: str


StreamsGroupKey: TypeAlias = (
    StreamsGroupMetadataKey
    | StreamsGroupMemberMetadataKey
    | StreamsTargetAssignmentMetadataKey
    | StreamsTargetAssignmentMemberKey
    | StreamsCurrentMemberAssignmentKey
    | StreamsGroupTopologyKey
)

_GroupKind: TypeAlias = (
    type[StreamsGroupMetadataKey] | type[StreamsTargetAssignmentMetadataKey] | type[StreamsGroupTopologyKey]
)
_MemberKind: TypeAlias = (
    type[StreamsGroupMemberMetadataKey]
    | type[StreamsTargetAssignmentMemberKey]
    | type[StreamsCurrentMemberAssignmentKey]
)

_OF_GROUPS: Final[dict[int, _GroupKind]] = {
    17: StreamsGroupMetadataKey,
    20: StreamsTargetAssignmentMetadataKey,
    23: StreamsGroupTopologyKey,
}
_OF_MEMBERS: Final[dict[int, _MemberKind]] = {
    19: StreamsGroupMemberMetadataKey,
    21: StreamsTargetAssignmentMemberKey,
    22: StreamsCurrentMemberAssignmentKey,
}
_VERSIONS: Final[dict[type, int]] = {kind: version for version, kind in (*_OF_GROUPS.items(), *_OF_MEMBERS.items())}


def encode_streams_group_key(key: StreamsGroupKey) -> bytes:
    """Encode a key. Raises ValueError for a string above 32,767 bytes."""
    writer = Writer().int16(_VERSIONS[type(key)])
    for text in key:
        write_string(writer, text)
    return writer.to_bytes()


def decode_streams_group_key(version: int, reader: Reader) -> StreamsGroupKey | None:
    """Decode a key after its `version`; None for another version than these. Raises DecodeError."""
    of_group = _OF_GROUPS.get(version)
    if of_group is not None:
        return of_group(read_string(reader))
    of_member = _OF_MEMBERS.get(version)
    return None if of_member is None else of_member(read_string(reader), read_string(reader))
