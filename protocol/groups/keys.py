"""Keys of the records in `__consumer_offsets`.

    int16 version | fields of that version

    version  key              fields                                value of the record
    0, 1     OffsetCommit     group, topic string, partition int32  `offsets`: the group's offset in a partition
    2        GroupMetadata    group string                          `metadata`: a classic group and its members
    3-8, 16  groups of the consumer protocol: `consumer_group_keys`
    10-15    share groups: `share_group_keys`
    17-23    streams groups: `streams_group_keys`

Kafka before 0.8.3 wrote version 0, which means the same as 1. Keys of unknown versions decode to `UnknownKey`, so that
a log of a newer Kafka loads. Source: Kafka's OffsetCommitKey, LegacyOffsetCommitKey, GroupMetadataKey,
CoordinatorRecordType.
"""

from __future__ import annotations

from struct import Struct, error
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.groups.classic_fields import read_string, write_string
from barnabas.protocol.groups.consumer_group_keys import (
    ConsumerGroupKey,
    decode_consumer_group_key,
    encode_consumer_group_key,
)
from barnabas.protocol.groups.share_group_keys import ShareGroupKey, decode_share_group_key, encode_share_group_key
from barnabas.protocol.primitives import Reader, Writer

if TYPE_CHECKING:
    from barnabas.protocol.groups.streams_group_keys import StreamsGroupKey

LEGACY_OFFSET_COMMIT: Final = 0
OFFSET_COMMIT: Final = 1
GROUP_METADATA: Final = 2
_OF_STREAMS_GROUPS: Final = frozenset((17, 19, 20, 21, 22, 23))

_VERSION: Final = Struct(">h")
_OFFSET_HEAD: Final = Struct(">hh")
_SIZE: Final = Struct(">h")
_PARTITION: Final = Struct(">i")


class OffsetCommitKey(NamedTuple):
    """A group's offset in one partition."""

    group: str
    topic: str
    partition: int


class GroupMetadataKey(NamedTuple):
    """A classic group."""

    group: str


class UnknownKey(NamedTuple):
    """A key of an unknown version; `body` is the rest of its bytes."""

    version: int
    body: bytes


GroupKey: TypeAlias = (
    "OffsetCommitKey | GroupMetadataKey | ConsumerGroupKey | ShareGroupKey | StreamsGroupKey | UnknownKey"
)


def encode_key(key: GroupKey) -> bytes:
    """Encode a key. Raises ValueError for a string above 32,767 bytes."""
    if isinstance(key, UnknownKey):
        return _VERSION.pack(key.version) + key.body
    if isinstance(key, GroupMetadataKey):
        return write_string(Writer().int16(GROUP_METADATA), key.group).to_bytes()
    if isinstance(key, ShareGroupKey):
        return encode_share_group_key(key)
    if not isinstance(key, OffsetCommitKey):
        if isinstance(key, ConsumerGroupKey):
            return encode_consumer_group_key(key)
        from barnabas.protocol.groups.streams_group_keys import encode_streams_group_key  # only for streams groups

        return encode_streams_group_key(key)
    group, topic = key.group.encode(), key.topic.encode()
    try:
        head = _OFFSET_HEAD.pack(OFFSET_COMMIT, len(group))
        return b"".join((head, group, _SIZE.pack(len(topic)), topic, _PARTITION.pack(key.partition)))
    except error as fault:
        raise ValueError(f"a key of {len(group)} and {len(topic)} bytes does not fit: {fault}") from fault


def decode_key(data: bytes) -> GroupKey:
    """Decode a key; version 0 as version 1. Raises DecodeError."""
    found = _decode_offset_commit(data)
    if found is not None:
        return found
    reader = Reader(data)
    version = reader.int16()
    if version in (LEGACY_OFFSET_COMMIT, OFFSET_COMMIT):
        key: GroupKey = OffsetCommitKey(read_string(reader), read_string(reader), reader.int32())
    elif version == GROUP_METADATA:
        key = GroupMetadataKey(read_string(reader))
    elif version < 0:
        raise DecodeError(f"version {version} of a key is negative")
    else:
        newer: ConsumerGroupKey | ShareGroupKey | StreamsGroupKey | None
        newer = decode_consumer_group_key(version, reader) or decode_share_group_key(version, reader)
        if newer is None and version in _OF_STREAMS_GROUPS:
            from barnabas.protocol.groups.streams_group_keys import decode_streams_group_key  # as above

            newer = decode_streams_group_key(version, reader)
        if newer is None:
            return UnknownKey(version, reader.rest())
        key = newer
    reader.ensure_end()
    return key


def _decode_offset_commit(data: bytes) -> OffsetCommitKey | None:
    """Decode the usual key, in a third of the Reader's time: a start reads one per record. None: use the Reader."""
    try:
        version, size = _OFFSET_HEAD.unpack_from(data)
        end = _OFFSET_HEAD.size + size
        if version != OFFSET_COMMIT or size < 0:
            return None
        topic_start = end + _SIZE.size
        topic_end = topic_start + _SIZE.unpack_from(data, end)[0]
        if topic_end < topic_start or len(data) != topic_end + _PARTITION.size:
            return None
        group, topic = data[_OFFSET_HEAD.size : end].decode(), data[topic_start:topic_end].decode()
        return OffsetCommitKey(group, topic, _PARTITION.unpack_from(data, topic_end)[0])
    except (error, UnicodeDecodeError):
        return None
