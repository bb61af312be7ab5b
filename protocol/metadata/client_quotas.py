"""A client quota: Kafka's ClientQuotaRecord (14), version 0.

    compact array [type compact string, name compact nullable string, tags], key compact string, value float64,
    remove bool, tags

Barnabas keeps these for Kafka and does not enforce them. Source: Kafka's ClientQuotaRecord.json.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.metadata.identities import CLIENT_QUOTA_KEY
from barnabas.protocol.metadata.records import UnknownRecord
from barnabas.protocol.primitives import Reader


class ClientQuota(NamedTuple):
    """One limit of an entity: pairs of type and name, sorted by type; name None is the default of the type."""

    entity: tuple[tuple[str, str | None], ...]
    key: str
    value: float


def read_client_quota(record: UnknownRecord) -> ClientQuota | None:
    """Decode the record; None for another type, a later version, undecodable bytes, or the removal of a limit.

    The record is carried in any case.
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
