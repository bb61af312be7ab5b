"""DescribeClientQuotas (48) and AlterClientQuotas (49): limits of users, client ids and addresses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Bool, Error, Float64, Int8, Int32, Message, Nullable, NullableString, String

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

MATCH_EXACT: Final = 0
MATCH_DEFAULT: Final = 1
MATCH_SPECIFIED: Final = 2

EntityPair = tuple[str, str | None]
"""A type and a name; None is the default of the type."""


class EntityPart(Struct):
    """An EntityPair in a message."""

    entity_type: String
    name: NullableString


def entity_of(pairs: Iterable[EntityPair]) -> tuple[EntityPart, ...]:
    """Return an entity for a message."""
    return tuple(EntityPart(entity_type=kind, name=name) for kind, name in pairs)


def pairs_of(entity: Iterable[EntityPart]) -> list[EntityPair]:
    """Return the parts of an entity of a message, in their order."""
    return [(part.entity_type, part.name) for part in entity]


class QuotaFilter(Struct):
    """An entity's part of one type: a name (EXACT, `match`), the default (DEFAULT), or either (SPECIFIED)."""

    entity_type: String
    match_type: Int8
    match: NullableString


class QuotaLimit(Struct):
    """One limit."""

    key: String
    value: Float64


class QuotaEntry(Struct):
    """An entity and its limits."""

    entity: Sequence[EntityPart]
    values: Sequence[QuotaLimit]


class DescribeClientQuotasResponse(Struct, flexible=1):
    """The matching entries; None in a refusal."""

    throttle_ms: Int32 = 0
    error: Error = ErrorCode.NONE
    message: Message = None
    entries: Annotated[Sequence[QuotaEntry] | None, Nullable()] = None


class DescribeClientQuotasRequest(Request[DescribeClientQuotasResponse], api=ApiKey.DESCRIBE_CLIENT_QUOTAS, flexible=1):
    """All filters must match; with `strict` an entity must have no further types."""

    filters: Sequence[QuotaFilter]
    strict: Bool = False

    def refused(self, code: ErrorCode, message: str) -> DescribeClientQuotasResponse:
        """The code and the message."""
        return DescribeClientQuotasResponse(error=code, message=message)


class QuotaOp(Struct):
    """Sets the limit `key`, or removes it."""

    key: String
    value: Float64
    remove: Bool = False


class QuotaAlteration(Struct):
    """The changes of one entity's limits."""

    entity: Sequence[EntityPart]
    ops: Sequence[QuotaOp]


class AlteredQuota(Struct):
    """The result for one entity."""

    error: Error = ErrorCode.NONE
    message: Message = None
    entity: Sequence[EntityPart]


class AlterClientQuotasResponse(Struct, flexible=1):
    """One result for each entity."""

    throttle_ms: Int32 = 0
    results: Sequence[AlteredQuota]


class AlterClientQuotasRequest(Request[AlterClientQuotasResponse], api=ApiKey.ALTER_CLIENT_QUOTAS, flexible=1):
    """Alters limits of entities, each of which may occur once."""

    entries: Sequence[QuotaAlteration]
    validate_only: Bool = False

    def refused(self, code: ErrorCode, message: str) -> AlterClientQuotasResponse:
        """The refusal at every entity."""
        results = [AlteredQuota(error=code, message=message, entity=each.entity) for each in self.entries]
        return AlterClientQuotasResponse(results=results)
