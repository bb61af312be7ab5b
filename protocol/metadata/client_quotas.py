"""A client quota of the metadata log, as Kafka's ClientQuotaRecord (14) version 0 says it.

    compact array [type compact string, name compact nullable string, tags], key compact string, value float64,
    remove bool, tags

Barnabas keeps these for Kafka and enforces none. Source: Kafka's ClientQuotaRecord.json.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.metadata.identities import CLIENT_QUOTA_KEY
from barnabas.protocol.metadata.records import UnknownRecord
from barnabas.protocol.primitives import Reader


class ClientQuota(NamedTuple):
    """One limit of an entity: pairs of type and name, sorted by type; a name of None is the default of all."""

    entity: tuple[tuple[str, str | None], ...]
    key: str
    value: float


def read_client_quota(record: UnknownRecord) -> ClientQuota | None:
    """None for a record of another kind or of a later version, one that does not decode, or one that ends a limit.

    It is kept all the same.
    """
    if record.key != CLIENT_QUOTA_KEY or record.version != 0:
        return None
    reader = Reader(record.body)
    try:
        entity = []
        for _ in range(reader.compact_array_length()):
            entity.append((reader.compact_string(), reader.compact_nullable_string()))
            reader.tagged_fields()
        key, value = reader.compact_string(), reader.float64()
        is_removed = reader.boolean()
    except DecodeError:
        return None
    return None if is_removed else ClientQuota(tuple(sorted(entity, key=lambda pair: pair[0])), key, value)
