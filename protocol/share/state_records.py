"""Records of `__share_group_state`: a share partition's state, and changes of it.

    key     int16 type, group id string, topic id uuid, partition int32; strings with int16 sizes
    value   int16 version 0, then the fields below, flexible; null in a snapshot's record deletes the state

A snapshot (type 0) is a whole state. An update (type 1) is merged into the state before it, and knows neither its
state epoch nor its times; a start offset of -1 means no change. Records of other types or versions are skipped, as in
Kafka. Source: Kafka's ShareSnapshotKey.json, ShareSnapshotValue.json, ShareUpdateKey.json, ShareUpdateValue.json.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.kafka.schema import INT8, INT16, INT32, INT64, STRING, UUID, Array, Message, Tagged
from barnabas.protocol.kafka.schema import Struct as Fields

SNAPSHOT_TYPE: Final = 0
UPDATE_TYPE: Final = 1

UNINITIALIZED: Final = -1
"""Stands for no start offset, and for no count of completed deliveries."""

MAX_BATCHES: Final = 10_000_000
"""Batches of one state: a bound against damaged records. Kafka has at most 10,000 locks in a share partition."""

_INT16: Final = Struct(">h")
_VERSION: Final = 0
_COMPLETE_COUNT: Final = Tagged(INT32, 0, UNINITIALIZED)


class SharePartitionKey(NamedTuple):
    """A group's view of one partition."""

    group_id: str
    topic_id: bytes
    partition: int


class StateBatch(NamedTuple):
    """Offsets in one state. `state`: 0 available, 2 acknowledged, 4 archived."""

    first_offset: int
    last_offset: int
    state: int
    delivery_count: int


class ShareSnapshot(NamedTuple):
    """A whole state. `delivery_complete_count`: offsets from `start_offset` on that need no further delivery."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    create_timestamp: int
    write_timestamp: int
    batches: Sequence[StateBatch] = ()
    delivery_complete_count: int = UNINITIALIZED


class ShareUpdate(NamedTuple):
    """A change of a state. `start_offset` -1: as before."""

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    batches: Sequence[StateBatch] = ()
    delivery_complete_count: int = UNINITIALIZED


_KEY: Final = Message(1, SharePartitionKey, group_id=STRING, topic_id=UUID, partition=INT32)
_BATCHES: Final = Array(
    Fields(StateBatch, first_offset=INT64, last_offset=INT64, state=INT8, delivery_count=INT16), make=tuple
)
_SNAPSHOT: Final = Message(
    0,
    ShareSnapshot,
    snapshot_epoch=INT32,
    state_epoch=INT32,
    leader_epoch=INT32,
    start_offset=INT64,
    delivery_complete_count=_COMPLETE_COUNT,
    create_timestamp=INT64,
    write_timestamp=INT64,
    batches=_BATCHES,
)
_UPDATE: Final = Message(
    0,
    ShareUpdate,
    snapshot_epoch=INT32,
    leader_epoch=INT32,
    start_offset=INT64,
    delivery_complete_count=_COMPLETE_COUNT,
    batches=_BATCHES,
)


def encode_key(key: SharePartitionKey, record_type: int) -> bytes:
    """Encode a record's key. Raises ValueError for a group id above 32,767 bytes."""
    if len(key.group_id.encode()) > 0x7FFF:
        raise ValueError(f"a group id of {len(key.group_id.encode())} bytes is longer than 32767")
    return _INT16.pack(record_type) + _KEY.write(0, key)


def encode_value(value: ShareSnapshot | ShareUpdate) -> bytes:
    """Encode a record's value."""
    message = _SNAPSHOT if isinstance(value, ShareSnapshot) else _UPDATE
    return _INT16.pack(_VERSION) + message.write(_VERSION, value)


def decode_key(data: bytes) -> tuple[int, SharePartitionKey] | None:
    """Return a record's type and key; None for a type that is not known. Raises DecodeError."""
    record_type = _number(data, "key")
    if record_type not in (SNAPSHOT_TYPE, UPDATE_TYPE):
        return None
    key: SharePartitionKey = _KEY.read(0, memoryview(data)[_INT16.size :])
    return record_type, key


def decode_value(record_type: int, data: bytes) -> ShareSnapshot | ShareUpdate | None:
    """Return a record's value; None for a version that is not known. Raises DecodeError."""
    if _number(data, "value") != _VERSION:
        return None
    message = _SNAPSHOT if record_type == SNAPSHOT_TYPE else _UPDATE
    value: ShareSnapshot | ShareUpdate = message.read(_VERSION, memoryview(data)[_INT16.size :], MAX_BATCHES)
    return value


def _number(data: bytes, what: str) -> int:
    if len(data) < _INT16.size:
        raise DecodeError(f"a {what} of {len(data)} bytes is not a share partition's")
    number: int = _INT16.unpack_from(data)[0]
    return number
