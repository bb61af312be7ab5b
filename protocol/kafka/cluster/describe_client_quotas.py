"""DescribeClientQuotas (48), versions 0-1."""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.cluster.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    QuotaFilter,
)

_API: Final = "describe_client_quotas"


def decode_request(version: int, body: memoryview) -> DescribeClientQuotasRequest:
    """Raises DecodeError."""
    request = entities.read_request(_API, version, body)
    filters = [QuotaFilter(each.entity_type, each.match_type, each.match) for each in request.components]
    return DescribeClientQuotasRequest(filters, request.strict)


def encode_response(version: int, response: DescribeClientQuotasResponse) -> bytes:
    """An entry for each entity."""
    schema = entities.response_schema(_API, version)
    entries = tuple(
        schema.EntryData(
            entity=tuple(schema.EntityData(entity_type=kind, entity_name=name) for kind, name in each.entity.items()),
            values=tuple(schema.ValueData(key=key, value=value) for key, value in each.values.items()),
        )
        for each in response.entries
    )
    return _encode(schema, ErrorCode.NONE, None, entries)


def encode_error(version: int, request: DescribeClientQuotasRequest, code: ErrorCode, message: str) -> bytes:
    """A refusal: no list at all."""
    return _encode(entities.response_schema(_API, version), code, entities.sentence(message), None)


def _encode(schema: Any, code: ErrorCode, message: str | None, entries: tuple[Any, ...] | None) -> bytes:
    return entities.write(
        schema.DescribeClientQuotasResponse(
            throttle_time=entities.NO_THROTTLE, error_code=code, error_message=message, entries=entries
        )
    )
