"""Records of the coordinators' topics as JSON for `barnabas log dump`, in the form of Kafka's decoders.

    key      {"type": "1", "data": {"group": "g", "topic": "orders", "partition": 0}}
    payload  {"version": "4", "data": {"offset": 42, ...}}

The fields are those of the declarations. Source: Kafka's DumpLogSegments.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.groups.consumer_protocol import (
    CONSUMER,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from barnabas.protocol.groups.keys import UnknownKey, decode_key
from barnabas.protocol.groups.values import GroupMetadataValue, values_of
from barnabas.protocol.share import state_records as share
from barnabas.protocol.transactions.records import TransactionLogKey, TransactionLogValue
from barnabas.protocol.wire.plain import plain
from barnabas.protocol.wire.records import RecordKey, RecordValue, head_of

_Kind = tuple[RecordKey, type[RecordValue]]
"""A key, and the class of its value."""


class UnknownType(NamedTuple):
    """A record of a type that is not known."""

    number: int


class Record(NamedTuple):
    """Key and payload as JSON; None is a tombstone's payload."""

    key: dict[str, Any]
    payload: dict[str, Any] | None


class CoordinatorLog(Enum):
    """Whose records are decoded."""

    OFFSETS = "__consumer_offsets"
    TRANSACTIONS = "__transaction_state"
    SHARE_GROUP_STATE = "__share_group_state"


def coordinator_json(log: CoordinatorLog, key: bytes | None, value: bytes | None) -> Record | UnknownType:
    """Convert a record. Raises DecodeError."""
    if key is None:
        raise DecodeError("a coordinator's record has a key")
    found = _DECODERS[log](key)
    if found is None:
        return UnknownType(head_of(key))
    decoded, kind = found
    payload = None
    if value is not None:
        version = head_of(value)
        payload = {"version": str(version), "data": _plain(kind.from_bytes(value), version)}
    return Record({"type": str(head_of(key)), "data": plain(decoded, 0)}, payload)


def _plain(value: RecordValue, version: int) -> dict[str, Any]:
    data = plain(value, version)
    if isinstance(value, GroupMetadataValue) and value.protocol_type == CONSUMER:
        for member, found in zip(value.members, data["members"], strict=True):
            found["subscription"] = _embedded(member.subscription, ConsumerProtocolSubscription, found["subscription"])
            found["assignment"] = _embedded(member.assignment, ConsumerProtocolAssignment, found["assignment"])
    return data


def _embedded(data: bytes, kind: type[RecordValue], otherwise: str) -> Any:
    """Return what consumers say to each other; the bytes, if they cannot be decoded, as Kafka's tool does."""
    try:
        version = head_of(data)
        return plain(kind.decode(version, data, len(data)), version) if kind.knows(data) else otherwise
    except DecodeError:
        return otherwise


def _of_groups(data: bytes) -> _Kind | None:
    key = decode_key(data)
    return None if isinstance(key, UnknownKey) else (key, values_of(key)[type(key)])


def _of_transactions(data: bytes) -> _Kind | None:
    is_known = head_of(data) == TransactionLogKey.number
    return (TransactionLogKey.from_bytes(data), TransactionLogValue) if is_known else None


def _of_share_partitions(data: bytes) -> _Kind | None:
    found = share.decode_key(data)
    if found is None:
        return None
    number, key = found
    return key, share.ShareSnapshotValue if number == share.ShareSnapshotKey.number else share.ShareUpdateValue


_DECODERS: dict[CoordinatorLog, Callable[[bytes], _Kind | None]] = {
    CoordinatorLog.OFFSETS: _of_groups,
    CoordinatorLog.TRANSACTIONS: _of_transactions,
    CoordinatorLog.SHARE_GROUP_STATE: _of_share_partitions,
}
