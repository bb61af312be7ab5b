"""Keys of the records of share groups (KIP-932), after the int16 version of every key.

    version  key                              fields                     value (`share_group_values`)
    10       ShareGroupMemberMetadata         group, member id string    a member's metadata
    11       ShareGroupMetadata               group string               the group's epoch
    12       ...TargetAssignmentMetadata      group string               the epoch of the target assignment
    13       ...TargetAssignmentMember        group, member id string    a member's target assignment
    14       ...CurrentMemberAssignment       group, member id string    a member's current assignment and epoch
    15       ShareGroupStatePartitionMetadata group string               the partitions whose state is initialized

Source: Kafka's CoordinatorRecordType and the key messages of those names.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from barnabas.protocol.groups.classic_fields import read_string, write_string
from barnabas.protocol.primitives import Reader, Writer


class ShareMemberMetadataKey(NamedTuple):
    """A member of a share group."""

    group: str
    member_id: str


class ShareGroupMetadataKey(NamedTuple):
    """A share group; its tombstone deletes the group."""

    group: str


class ShareTargetMetadataKey(NamedTuple):
    """The target assignment of a group as a whole."""

    group: str


class ShareTargetMemberKey(NamedTuple):
    """One member's part of the target assignment."""

    group: str
    member_id: str


class ShareCurrentAssignmentKey(NamedTuple):
    """A member's current assignment."""

    group: str
    member_id: str


class ShareStatePartitionsKey(NamedTuple):
    """The partitions whose share state is initialized, or is about to be."""

    group: str


ShareGroupKey: TypeAlias = (
    ShareMemberMetadataKey
    | ShareGroupMetadataKey
    | ShareTargetMetadataKey
    | ShareTargetMemberKey
    | ShareCurrentAssignmentKey
    | ShareStatePartitionsKey
)

_GroupKind: TypeAlias = type[ShareGroupMetadataKey] | type[ShareTargetMetadataKey] | type[ShareStatePartitionsKey]
_MemberKind: TypeAlias = type[ShareMemberMetadataKey] | type[ShareTargetMemberKey] | type[ShareCurrentAssignmentKey]

_OF_GROUPS: Final[dict[int, _GroupKind]] = {
    11: ShareGroupMetadataKey,
    12: ShareTargetMetadataKey,
    15: ShareStatePartitionsKey,
}
_OF_MEMBERS: Final[dict[int, _MemberKind]] = {
    10: ShareMemberMetadataKey,
    13: ShareTargetMemberKey,
    14: ShareCurrentAssignmentKey,
}
_VERSIONS: Final[dict[type, int]] = {kind: version for version, kind in (*_OF_GROUPS.items(), *_OF_MEMBERS.items())}


def encode_share_group_key(key: ShareGroupKey) -> bytes:
    """Encode a key. Raises ValueError for a string above 32,767 bytes."""
    writer = Writer().int16(_VERSIONS[type(key)])
    for text in key:
        write_string(writer, text)
    return writer.to_bytes()


def decode_share_group_key(version: int, reader: Reader) -> ShareGroupKey | None:
    """Decode a key after its `version`; None for another version than these. Raises DecodeError."""
    of_group = _OF_GROUPS.get(version)
    if of_group is not None:
        return of_group(read_string(reader))
    of_member = _OF_MEMBERS.get(version)
    return None if of_member is None else of_member(read_string(reader), read_string(reader))
