"""AlterClientQuotas (49), versions 0-1."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    BOOL,
    FLOAT64,
    INT16,
    MESSAGE,
    NO_THROTTLE,
    NULLABLE_STRING,
    STRING,
    Array,
    Message,
    Struct,
    rows,
)
from barnabas.protocol.messages.security.client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlteredQuota,
    EntityPart,
    QuotaAlteration,
    QuotaOp,
)

ENTITY = Array(Struct(EntityPart, entity_type=STRING, name=NULLABLE_STRING), make=tuple)
REQUEST = Message(
    1,
    AlterClientQuotasRequest,
    entries=rows(
        QuotaAlteration,
        entity=ENTITY,
        ops=Array(Struct(QuotaOp, key=STRING, value=FLOAT64, remove=BOOL), make=tuple),
    ),
    validate_only=BOOL,
)
RESPONSE = Message(1, throttle_ms=NO_THROTTLE, results=rows(error=INT16, message=MESSAGE, entity=ENTITY))

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: AlterClientQuotasRequest, code: ErrorCode, message: str) -> bytes:
    """The refusal at every entity."""
    results = [AlteredQuota(entry.entity, code, message) for entry in request.entries]
    return RESPONSE.write(version, AlterClientQuotasResponse(results))
