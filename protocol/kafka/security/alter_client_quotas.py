"""AlterClientQuotas (49), versions 0-1."""

from __future__ import annotations

from operator import itemgetter

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
    Computed,
    Message,
    Struct,
    rows,
)
from barnabas.protocol.messages.security.client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlteredQuota,
    QuotaAlteration,
    QuotaOp,
)


def _pair(entity_type: str, name: str | None) -> tuple[str, str | None]:
    return entity_type, name


REQUEST = Message(
    1,
    AlterClientQuotasRequest,
    entries=rows(
        QuotaAlteration,
        entity=Array(Struct(_pair, entity_type=STRING, name=NULLABLE_STRING), make=tuple),
        ops=Array(Struct(QuotaOp, key=STRING, value=FLOAT64, remove=BOOL), make=tuple),
    ),
    validate_only=BOOL,
)
_ENTITY = Struct(type=Computed(STRING, itemgetter(0)), name=Computed(NULLABLE_STRING, itemgetter(1)))
RESPONSE = Message(1, throttle_ms=NO_THROTTLE, results=rows(error=INT16, message=MESSAGE, entity=Array(_ENTITY)))

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: AlterClientQuotasRequest, code: ErrorCode, message: str) -> bytes:
    """The refusal at every entity."""
    results = [AlteredQuota(entry.entity, code, message) for entry in request.entries]
    return RESPONSE.write(version, AlterClientQuotasResponse(results))
