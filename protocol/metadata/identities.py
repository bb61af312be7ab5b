"""Identities of the objects in carried metadata records, so that a snapshot needs only their latest state.

    key  record                      object, with the fields that identify it
    0    RegisterBroker              broker: id int32
    1    UnregisterBroker            removes it
    7, 8, 17  FenceBroker, UnfenceBroker, BrokerRegistrationChange   modify it
    20   NoOp                        none
    21   ZkMigrationState            the migration state
    27   RegisterController          controller: id int32

Records with a key or a version outside this table have no identity: all of them are kept, in order.
Source: the JSON definitions in Kafka's kafka-metadata jar.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.metadata.records import UnknownRecord
from barnabas.protocol.primitives import Reader

NO_OP_KEY = 20


class Effect(Enum):
    """The effect of a record on its object."""

    SET = "replaces its earlier records"
    ADD = "modifies it, so earlier records are kept"
    REMOVE = "removes it"


class Identity(NamedTuple):
    """Kind and unique name of an object that records describe."""

    kind: str
    name: bytes


def identify(record: UnknownRecord) -> tuple[Identity, Effect] | None:
    """Return the record's object and effect, None if unknown."""
    entry = _TABLE.get(record.key)
    if entry is None or record.version > entry.newest_version:
        return None
    try:
        reader = Reader(record.body)
        return Identity(entry.kind, entry.name(reader)), entry.effect
    except DecodeError:
        return None


class _Entry(NamedTuple):
    kind: str
    newest_version: int
    effect: Effect
    name: Callable[[Reader], bytes]


def _id(reader: Reader) -> bytes:
    return reader.raw(4)


def _nothing(_: Reader) -> bytes:
    return b""


_TABLE = {
    0: _Entry("broker", 4, Effect.SET, _id),
    1: _Entry("broker", 0, Effect.REMOVE, _id),
    7: _Entry("broker", 0, Effect.ADD, _id),
    8: _Entry("broker", 0, Effect.ADD, _id),
    17: _Entry("broker", 3, Effect.ADD, _id),
    21: _Entry("migration", 0, Effect.SET, _nothing),
    27: _Entry("controller", 0, Effect.SET, _id),
}
