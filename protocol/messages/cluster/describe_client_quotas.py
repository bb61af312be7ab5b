"""DescribeClientQuotas (key 48): a cluster's quotas for users, client ids and addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode

MATCH_EXACT = 0
MATCH_DEFAULT = 1
MATCH_SPECIFIED = 2


@dataclass(slots=True)
class QuotaFilter:
    """An entity's part of one type: a name (EXACT, `match`), the default (DEFAULT), or either (SPECIFIED)."""

    entity_type: str
    match_type: int
    match: str | None


@dataclass(slots=True)
class DescribeClientQuotasRequest:
    """All filters must match; with `strict` an entity must have no further types."""

    filters: list[QuotaFilter]
    strict: bool


@dataclass(slots=True)
class QuotaEntry:
    """An entity (type to name, None: the default), and its limits by name."""

    entity: Mapping[str, str | None]
    values: dict[str, float]


@dataclass(slots=True)
class DescribeClientQuotasResponse:
    """The matching entries."""

    entries: list[QuotaEntry]
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
