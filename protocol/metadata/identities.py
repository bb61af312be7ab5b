"""Identities of the objects in carried metadata records, so that a snapshot needs only their latest state.

    key  record                      object, with the fields that identify it
    0    RegisterBroker              broker: id int32
    1    UnregisterBroker            removes it
    7, 8, 17  FenceBroker, UnfenceBroker, BrokerRegistrationChange   modify it
    10   DelegationToken             token: id, which follows owner, requester, renewers and three timestamps
    11   UserScramCredential         credential: user, mechanism int8
    14   ClientQuota                 quota: entity, key; `remove` removes it
    18   AccessControlEntry          ACL: id
    19, 22, 26  Remove...            remove an ACL, a credential, a token
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
from barnabas.protocol.primitives import Reader, Writer

NO_OP_KEY = 20
CLIENT_QUOTA_KEY = 14


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
        if record.key == CLIENT_QUOTA_KEY:
            return _quota(reader)
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


def _uuid(reader: Reader) -> bytes:
    return reader.uuid()


def _user_and_mechanism(reader: Reader) -> bytes:
    return reader.compact_string().encode() + b"\0" + reader.raw(1)


def _token_of_record(reader: Reader) -> bytes:
    reader.compact_string()  # owner
    reader.compact_string()  # requester
    reader.compact_array(reader.compact_string)
    reader.raw(3 * 8)
    return _token(reader)


def _token(reader: Reader) -> bytes:
    return reader.compact_string().encode()


def _nothing(_: Reader) -> bytes:
    return b""


def _quota(reader: Reader) -> tuple[Identity, Effect]:
    entity = []
    for _ in range(reader.compact_array_length()):
        entity.append((reader.compact_string(), reader.compact_nullable_string()))
        reader.tagged_fields()
    name = Writer()
    for entity_type, entity_name in sorted(entity, key=lambda pair: pair[0]):
        name.compact_string(entity_type).compact_nullable_string(entity_name)
    name.compact_string(reader.compact_string())
    reader.float64()
    return Identity("quota", name.to_bytes()), Effect.REMOVE if reader.boolean() else Effect.SET


_TABLE = {
    0: _Entry("broker", 4, Effect.SET, _id),
    1: _Entry("broker", 0, Effect.REMOVE, _id),
    7: _Entry("broker", 0, Effect.ADD, _id),
    8: _Entry("broker", 0, Effect.ADD, _id),
    10: _Entry("token", 0, Effect.SET, _token_of_record),
    11: _Entry("credential", 0, Effect.SET, _user_and_mechanism),
    CLIENT_QUOTA_KEY: _Entry("quota", 0, Effect.SET, _nothing),
    17: _Entry("broker", 3, Effect.ADD, _id),
    18: _Entry("ACL", 0, Effect.SET, _uuid),
    19: _Entry("ACL", 0, Effect.REMOVE, _uuid),
    21: _Entry("migration", 0, Effect.SET, _nothing),
    22: _Entry("credential", 0, Effect.REMOVE, _user_and_mechanism),
    26: _Entry("token", 0, Effect.REMOVE, _token),
    27: _Entry("controller", 0, Effect.SET, _id),
}
