"""A user's SCRAM credential: Kafka's UserScramCredentialRecord (11), version 0.

    name compact string, mechanism int8, salt, stored key and server key compact bytes, iterations int32, tags

Barnabas keeps these for Kafka and does not authenticate with them. Source: Kafka's UserScramCredentialRecord.json.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.metadata.records import UnknownRecord
from barnabas.protocol.primitives import Reader

_KEY: Final = 11


class ScramCredential(NamedTuple):
    """The public part: neither the salt nor the keys."""

    user: str
    mechanism: int
    iterations: int


def read_scram_credential(record: UnknownRecord) -> ScramCredential | None:
    """Decode the record; None for another type, a later version or undecodable bytes, which are carried anyway."""
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
