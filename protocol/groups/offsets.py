"""Value of an OffsetCommit record: a group's offset in one partition.

    int16 version | fields

    version  fields
    0, 2     offset int64, metadata string, commit timestamp int64
    1        as 0, then expire timestamp int64: for a commit with a retention of its own
    3        offset int64, leader epoch int32, metadata string, commit timestamp int64
    4        as 3 with a compact string, then tagged fields: 0 topic id uuid, omitted if zero

Kafka 4.3 writes 4 (1 with an expire timestamp); Kafka 3.7 and later read it, and versions before 4.2 skip the topic id.
Unknown tags are skipped. Source: Kafka's OffsetCommitValue.json, GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from struct import Struct, error
from typing import Final, NamedTuple

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.groups.classic_fields import read_string, write_string
from barnabas.protocol.primitives import Reader, Writer
from barnabas.protocol.uuids import UUID_SIZE, ZERO_UUID

NO_LEADER_EPOCH: Final = -1
NO_TIMESTAMP: Final = -1

_NEWEST: Final = 4
_WITH_EXPIRY: Final = 1
_EPOCH_FROM: Final = 3
_FLEXIBLE_FROM: Final = 4
_TOPIC_ID_TAG: Final = 0

# Version 4 as in nearly every record: the length of the metadata takes one byte; the topic id or no tag.
_SHORT_METADATA: Final = 127
_NEWEST_HEAD: Final = Struct(">hqiB")
_TIMESTAMP: Final = Struct(">q")
_NO_TAGS: Final = b"\x00"
_TOPIC_ID_HEAD: Final = bytes((1, _TOPIC_ID_TAG, UUID_SIZE))


class OffsetCommitValue(NamedTuple):
    """The next offset that the group will read. Timestamps in ms.

    leader_epoch       of the last record read, -1 if the client did not send it
    expire_timestamp   -1: after offsets.retention.minutes
    topic_id           zero if unknown
    """

    offset: int
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str = ""
    commit_timestamp: int = NO_TIMESTAMP
    expire_timestamp: int = NO_TIMESTAMP
    topic_id: bytes = ZERO_UUID


def value_version(value: OffsetCommitValue) -> int:
    """Return the version that Kafka 4.3 writes for the value."""
    return _NEWEST if value.expire_timestamp == NO_TIMESTAMP else _WITH_EXPIRY


def encode_offset_commit(value: OffsetCommitValue, version: int | None = None) -> bytes:
    """Encode without fields that `version` lacks. Raises ValueError for a string above 32,767 bytes."""
    if version is None:
        version = value_version(value)
    metadata = value.metadata.encode()
    if version == _NEWEST and len(metadata) < _SHORT_METADATA:
        tail = _NO_TAGS if value.topic_id == ZERO_UUID else _TOPIC_ID_HEAD + value.topic_id
        try:
            head = _NEWEST_HEAD.pack(version, value.offset, value.leader_epoch, len(metadata) + 1)
            return b"".join((head, metadata, _TIMESTAMP.pack(value.commit_timestamp), tail))
        except error as fault:
            raise ValueError(f"{value} does not fit: {fault}") from fault
    if not 0 <= version <= _NEWEST:
        raise ValueError(f"there is no version {version} of an offset commit")
    writer = Writer().int16(version).int64(value.offset)
    if version >= _EPOCH_FROM:
        writer.int32(value.leader_epoch)
    if version >= _FLEXIBLE_FROM:
        tags = {} if value.topic_id == ZERO_UUID else {_TOPIC_ID_TAG: value.topic_id}
        return writer.compact_string(value.metadata).int64(value.commit_timestamp).tagged_fields(tags).to_bytes()
    write_string(writer, value.metadata).int64(value.commit_timestamp)
    if version == _WITH_EXPIRY:
        writer.int64(value.expire_timestamp)
    return writer.to_bytes()


def decode_offset_commit(data: bytes) -> OffsetCommitValue:
    """Decode a value of any version. Raises DecodeError."""
    found = _decode_newest(data)
    if found is not None:
        return found
    reader = Reader(data)
    version = reader.int16()
    if not 0 <= version <= _NEWEST:
        raise DecodeError(f"version {version} of an offset commit is not 0 to {_NEWEST}")
    offset = reader.int64()
    leader_epoch = reader.int32() if version >= _EPOCH_FROM else NO_LEADER_EPOCH
    metadata = reader.compact_string() if version >= _FLEXIBLE_FROM else read_string(reader)
    commit_timestamp = reader.int64()
    expire_timestamp = reader.int64() if version == _WITH_EXPIRY else NO_TIMESTAMP
    topic_id = ZERO_UUID
    if version >= _FLEXIBLE_FROM:
        topic_id = reader.tagged_fields().get(_TOPIC_ID_TAG, ZERO_UUID)
        if len(topic_id) != UUID_SIZE:
            raise DecodeError(f"a topic id of {len(topic_id)} bytes")
    reader.ensure_end()
    return OffsetCommitValue(offset, leader_epoch, metadata, commit_timestamp, expire_timestamp, topic_id)


def _decode_newest(data: bytes) -> OffsetCommitValue | None:
    """Decode the usual value, in a quarter of the Reader's time. None: use the Reader, which raises the errors."""
    try:
        version, offset, leader_epoch, length = _NEWEST_HEAD.unpack_from(data)
        if version != _NEWEST or not 0 < length <= _SHORT_METADATA:
            return None
        end = _NEWEST_HEAD.size + length - 1
        (commit_timestamp,) = _TIMESTAMP.unpack_from(data, end)
        tail = data[end + _TIMESTAMP.size :]
        topic_id = ZERO_UUID
        if tail != _NO_TAGS:
            topic_id = tail[len(_TOPIC_ID_HEAD) :]
            if len(topic_id) != UUID_SIZE or not tail.startswith(_TOPIC_ID_HEAD):
                return None
        metadata = data[_NEWEST_HEAD.size : end].decode()
    except (error, UnicodeDecodeError):
        return None
    return OffsetCommitValue(offset, leader_epoch, metadata, commit_timestamp, NO_TIMESTAMP, topic_id)
