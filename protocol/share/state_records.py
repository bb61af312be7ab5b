"""Records of `__share_group_state`: a share partition's state, and changes of it.

A snapshot is a whole state; without a value it deletes the state. An update is merged into the state before it, and
knows neither its state epoch nor its times. Records of other types or versions are skipped, as in Kafka. Source:
Kafka's ShareSnapshotKey.json, ShareSnapshotValue.json, ShareUpdateKey.json, ShareUpdateValue.json.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.wire.fields import tagged
from barnabas.protocol.wire.records import RecordKey, RecordValue, head_of
from barnabas.protocol.wire.structures import Struct
from barnabas.protocol.wire.types import Int8, Int16, Int32, Int64, String, Uuid

UNINITIALIZED: Final = -1
"""Stands for no start offset, and for no count of completed deliveries."""


class ShareSnapshotKey(RecordKey, number=0, frozen=True, kw_only=False):
    """A group's view of one partition."""

    group_id: String
    topic_id: Uuid
    partition: Int32


class ShareUpdateKey(ShareSnapshotKey, number=1, frozen=True, kw_only=False):
    """The same in the record of a change."""


SharePartitionKey = ShareSnapshotKey
"""A group's view of one partition, as the key of its state."""


class StateBatch(Struct, frozen=True, kw_only=False):
    """Offsets in one state. `delivery_state`: 0 available, 2 acknowledged, 4 archived."""

    first_offset: Int64
    last_offset: Int64
    delivery_state: Int8
    delivery_count: Int16


class ShareSnapshotValue(RecordValue, flexible=0, frozen=True):
    """A whole state. `delivery_complete_count`: offsets from `start_offset` on that need no further delivery."""

    snapshot_epoch: Int32
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Int32 = tagged(0, default=UNINITIALIZED)
    create_timestamp: Int64
    write_timestamp: Int64
    state_batches: tuple[StateBatch, ...] = ()


class ShareUpdateValue(RecordValue, flexible=0, frozen=True):
    """A change of a state. `start_offset` -1: as before."""

    snapshot_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Int32 = tagged(0, default=UNINITIALIZED)
    state_batches: tuple[StateBatch, ...] = ()


def decode_key(data: bytes) -> tuple[int, SharePartitionKey] | None:
    """Return a record's type and key; None for a type that is not known. Raises DecodeError."""
    number = head_of(data)
    if number not in (ShareSnapshotKey.number, ShareUpdateKey.number):
        return None
    return number, SharePartitionKey.from_bytes(data)


def decode_value(number: int, data: bytes) -> ShareSnapshotValue | ShareUpdateValue | None:
    """Return the value of a record of a type; None for a version that is not known. Raises DecodeError."""
    structure = ShareSnapshotValue if number == ShareSnapshotKey.number else ShareUpdateValue
    return structure.from_bytes(data) if structure.knows(data) else None
