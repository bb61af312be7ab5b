"""AlterClientQuotas (key 49): sets and removes limits of users, client ids and addresses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from barnabas.protocol.errors import ErrorCode

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"


class EntityPart(NamedTuple):
    """A type and a name; None is the default of the type."""

    entity_type: str
    name: str | None


EntityParts = tuple[EntityPart, ...]
"""An entity, in the order of the request."""


class QuotaOp(NamedTuple):
    """Sets the limit `key`, or removes it."""

    key: str
    value: float
    remove: bool = False


class QuotaAlteration(NamedTuple):
    """The changes of one entity's limits."""

    entity: EntityParts
    ops: tuple[QuotaOp, ...]


@dataclass(slots=True)
class AlterClientQuotasRequest:
    """Alters limits of entities, each of which may occur once."""

    entries: list[QuotaAlteration]
    validate_only: bool = False


@dataclass(slots=True)
class AlteredQuota:
    """The result for one entity."""

    entity: EntityParts
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(slots=True)
class AlterClientQuotasResponse:
    """One result for each entity."""

    results: list[AlteredQuota]
