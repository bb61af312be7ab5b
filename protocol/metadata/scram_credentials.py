"""A user's credential of the metadata log, as Kafka's UserScramCredentialRecord (11) version 0 says it.

    name compact string, mechanism int8, salt, stored key and server key compact bytes, iterations int32, tags

Barnabas keeps these for Kafka and lets nobody in by them. Source: Kafka's UserScramCredentialRecord.json.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.metadata.records import UnknownRecord
from barnabas.protocol.primitives import Reader

_KEY: Final = 11


class ScramCredential(NamedTuple):
    """What may be told of it: neither the salt nor the keys."""

    user: str
    mechanism: int
    iterations: int


def read_scram_credential(record: UnknownRecord) -> ScramCredential | None:
    """None for a record of another kind or of a later version, or one that does not decode: it is kept all the same."""
    if record.key != _KEY or record.version != 0:
        return None
    reader = Reader(record.body)
    try:
        user, mechanism = reader.compact_string(), reader.int8()
        for _ in ("salt", "stored key", "server key"):
            reader.compact_bytes()
        return ScramCredential(user, mechanism, reader.int32())
    except DecodeError:
        return None
