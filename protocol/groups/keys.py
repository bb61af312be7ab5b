"""Keys of the records in `__consumer_offsets`. The type of a key says what its value is.

    0, 1     OffsetCommitKey, GroupMetadataKey 2                        `values`
    3-8, 16  ConsumerGroupKey: groups of the consumer protocol          `consumer_group_values`
    10-15    ShareGroupKey: share groups (KIP-932)                      `share_group_values`
    17-23    StreamsGroupKey: streams groups (KIP-1071)                 `streams_group_values`

Kafka before 0.8.3 wrote type 0, which means the same as 1. Keys of unknown types decode to `UnknownKey`, so that a log
of a newer Kafka loads. Source: Kafka's CoordinatorRecordType, and the key messages of these names.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.wire.records import HEAD_SIZE, RecordKey, head_of
from barnabas.protocol.wire.types import Int32, String


class OffsetCommitKey(RecordKey, number=1, frozen=True, kw_only=False):
    """A group's offset in one partition."""

    group: String
    topic: String
    partition: Int32


class GroupMetadataKey(RecordKey, number=2, frozen=True, kw_only=False):
    """A classic group."""

    group: String


class _GroupKey(RecordKey, frozen=True, kw_only=False):
    group_id: String

    @property
    def group(self) -> str:
        """The group id, as older keys name it."""
        return self.group_id


class ConsumerGroupKey(_GroupKey, frozen=True, kw_only=False):
    """A part of a consumer group."""


class ConsumerGroupMetadataKey(ConsumerGroupKey, number=3, frozen=True, kw_only=False):
    """A consumer group; its tombstone deletes the group."""


class ConsumerGroupPartitionMetadataKey(ConsumerGroupKey, number=4, frozen=True, kw_only=False):
    """The partition counts of a group's topics, as Kafka before 4.1 stored them. Only tombstones are written."""


class ConsumerGroupMemberMetadataKey(ConsumerGroupKey, number=5, frozen=True, kw_only=False):
    """A member of a consumer group."""

    member_id: String


class ConsumerGroupTargetAssignmentMetadataKey(ConsumerGroupKey, number=6, frozen=True, kw_only=False):
    """The target assignment of a group as a whole."""


class ConsumerGroupTargetAssignmentMemberKey(ConsumerGroupKey, number=7, frozen=True, kw_only=False):
    """One member's part of the target assignment."""

    member_id: String


class ConsumerGroupCurrentMemberAssignmentKey(ConsumerGroupKey, number=8, frozen=True, kw_only=False):
    """A member's current assignment."""

    member_id: String


class ConsumerGroupRegularExpressionKey(ConsumerGroupKey, number=16, frozen=True, kw_only=False):
    """An expression with which members of the group subscribe."""

    regular_expression: String


class ShareGroupKey(_GroupKey, frozen=True, kw_only=False):
    """A part of a share group."""


class ShareGroupMemberMetadataKey(ShareGroupKey, number=10, frozen=True, kw_only=False):
    """A member of a share group."""

    member_id: String


class ShareGroupMetadataKey(ShareGroupKey, number=11, frozen=True, kw_only=False):
    """A share group; its tombstone deletes the group."""


class ShareGroupTargetAssignmentMetadataKey(ShareGroupKey, number=12, frozen=True, kw_only=False):
    """The target assignment of a group as a whole."""


class ShareGroupTargetAssignmentMemberKey(ShareGroupKey, number=13, frozen=True, kw_only=False):
    """One member's part of the target assignment."""

    member_id: String


class ShareGroupCurrentMemberAssignmentKey(ShareGroupKey, number=14, frozen=True, kw_only=False):
    """A member's current assignment."""

    member_id: String


class ShareGroupStatePartitionMetadataKey(ShareGroupKey, number=15, frozen=True, kw_only=False):
    """The partitions whose share state is initialized, or is about to be."""


class StreamsGroupKey(_GroupKey, frozen=True, kw_only=False):
    """A part of a streams group."""


class StreamsGroupMetadataKey(StreamsGroupKey, number=17, frozen=True, kw_only=False):
    """A streams group; its tombstone deletes the group."""


class StreamsGroupMemberMetadataKey(StreamsGroupKey, number=19, frozen=True, kw_only=False):
    """A member of a streams group."""

    member_id: String


class StreamsGroupTargetAssignmentMetadataKey(StreamsGroupKey, number=20, frozen=True, kw_only=False):
    """The target assignment of a group as a whole."""


class StreamsGroupTargetAssignmentMemberKey(StreamsGroupKey, number=21, frozen=True, kw_only=False):
    """One member's part of the target assignment."""

    member_id: String


class StreamsGroupCurrentMemberAssignmentKey(StreamsGroupKey, number=22, frozen=True, kw_only=False):
    """A member's current assignment."""

    member_id: String


class StreamsGroupTopologyKey(StreamsGroupKey, number=23, frozen=True, kw_only=False):
    """The topology of a group."""


class UnknownKey(NamedTuple):
    """A key of an unknown type; `body` is the rest of its bytes."""

    number: int
    body: bytes

    def to_bytes(self) -> bytes:
        """Return the bytes of the key."""
        return self.number.to_bytes(HEAD_SIZE, "big") + self.body


KnownKey: TypeAlias = OffsetCommitKey | GroupMetadataKey | ConsumerGroupKey | ShareGroupKey | StreamsGroupKey

_CLASSES: Final[tuple[type[KnownKey], ...]] = (
    OffsetCommitKey,
    GroupMetadataKey,
    *ConsumerGroupKey.__subclasses__(),
    *ShareGroupKey.__subclasses__(),
    *StreamsGroupKey.__subclasses__(),
)
_KEYS: Final[dict[bytes, type[KnownKey]]] = {
    b"\0\0": OffsetCommitKey,  # as Kafka before 0.8.3 wrote it
    **{key.number.to_bytes(HEAD_SIZE, "big"): key for key in _CLASSES},
}


def decode_key(data: bytes) -> KnownKey | UnknownKey:
    """Decode a key; type 0 as type 1. Raises DecodeError."""
    key = _KEYS.get(data[:HEAD_SIZE])
    if key is not None:
        return key.from_bytes(data)
    number = head_of(data)
    if number < 0:
        raise DecodeError(f"type {number} of a key is negative")
    return UnknownKey(number, data[HEAD_SIZE:])
