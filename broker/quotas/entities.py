"""Which quota applies to a user and a client id, and which clients share it.

The first of these entities that has a quota counts:

    user and client id; user and any client id; user;
    any user and client id; any user and any client id; any user;
    client id; any client id

A quota of a user alone, or of any user, is shared by all client ids of a user; one of a client id alone by the client
id's connections of all users; any other by the connections with the same user and client id. An empty client id has
only quotas of users. Source: Kafka's ClientQuotaManager.DefaultQuotaCallback.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from barnabas.broker.metadata.security.image import QuotaEntity, quota_entity

USER = "user"
CLIENT_ID = "client-id"
IP = "ip"


class QuotaKind(StrEnum):
    """Quotas of users and client ids, by the key of their values in the metadata log."""

    PRODUCE = "producer_byte_rate"
    FETCH = "consumer_byte_rate"
    REQUEST = "request_percentage"
    CONTROLLER_MUTATION = "controller_mutation_rate"


CLIENT_ID_CHARACTERS_MAX: Final = 256
"""Longer client ids are known by a digest: the buckets of 10,000 of them would take the memory otherwise."""


class Sharing(NamedTuple):
    """The clients that share a quota. An empty user or client id stands for all."""

    user: str
    client_id: str


class QuotaTable:
    """The quotas of one kind."""

    def __init__(self, kind: QuotaKind, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        self._bounds = {
            entity: values[kind] for entity, values in quotas.items() if kind in values and _is_of_client(entity)
        }

    def __bool__(self) -> bool:
        return bool(self._bounds)

    def find(self, user: str, client_id: str) -> tuple[Sharing, float] | None:
        """Return the quota of a client and who shares it, None without a quota."""
        for name in (user, None):
            for client in (client_id, None) if client_id else ():
                bound = self._bounds.get(quota_entity([(USER, name), (CLIENT_ID, client)]))
                if bound is not None:
                    return Sharing(user, _short(client_id)), bound
            bound = self._bounds.get(quota_entity([(USER, name)]))
            if bound is not None:
                return Sharing(user, ""), bound
        for client in (client_id, None) if client_id else ():
            bound = self._bounds.get(quota_entity([(CLIENT_ID, client)]))
            if bound is not None:
                return Sharing("", _short(client_id)), bound
        return None


def _short(client_id: str) -> str:
    if len(client_id) <= CLIENT_ID_CHARACTERS_MAX:
        return client_id
    import hashlib  # late: few clients have such an id, and a start would wait 2 ms for it

    return hashlib.sha256(client_id.encode(errors="surrogatepass")).hexdigest()


def _is_of_client(entity: QuotaEntity) -> bool:
    return all(kind in (USER, CLIENT_ID) for kind, _ in entity)
