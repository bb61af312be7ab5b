"""DescribeClientQuotas (48), versions 0-1. A refusal has a null list of entries."""

from __future__ import annotations

from operator import itemgetter

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    BOOL,
    FLOAT64,
    INT8,
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
from barnabas.protocol.messages.cluster.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    QuotaFilter,
)

REQUEST = Message(
    1,
    DescribeClientQuotasRequest,
    filters=rows(QuotaFilter, entity_type=STRING, match_type=INT8, match=NULLABLE_STRING),
    strict=BOOL,
)
_ENTITY = Struct(type=Computed(STRING, itemgetter(0)), name=Computed(NULLABLE_STRING, itemgetter(1)))
_VALUE = Struct(key=Computed(STRING, itemgetter(0)), value=Computed(FLOAT64, itemgetter(1)))
_ENTRY = Struct(
    entity=Computed(Array(_ENTITY), lambda entry: entry.entity.items()),
    values=Computed(Array(_VALUE), lambda entry: entry.values.items()),
)
RESPONSE = Message(
    1,
    throttle_ms=NO_THROTTLE,
    error=INT16,
    message=MESSAGE,
    entries=Computed(Array(_ENTRY, nullable_from=0), lambda response: None if response.error else response.entries),
)

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: DescribeClientQuotasRequest, code: ErrorCode, message: str) -> bytes:
    """A refusal."""
    return RESPONSE.write(version, DescribeClientQuotasResponse([], code, message))
