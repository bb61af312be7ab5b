"""ListTransactions (66), versions 0-2: filters by duration from version 1 on, by a pattern from version 2 on."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    INT16,
    INT64,
    NO_THROTTLE,
    NULLABLE_STRING,
    STRING,
    Array,
    Message,
    rows,
    since,
)
from barnabas.protocol.messages.transactions.list_transactions import ListTransactionsRequest, ListTransactionsResponse

REQUEST = Message(
    0,
    ListTransactionsRequest,
    states=Array(STRING),
    producer_ids=Array(INT64),
    duration_ms=since(1, INT64),
    transactional_id_pattern=since(2, NULLABLE_STRING),
)
RESPONSE = Message(
    0,
    throttle_ms=NO_THROTTLE,
    error=INT16,
    unknown_states=Array(STRING),
    transactions=rows(transactional_id=STRING, producer_id=INT64, state=STRING),
)

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: ListTransactionsRequest, code: ErrorCode, message: str) -> bytes:
    """The code, and no transactions."""
    return RESPONSE.write(version, ListTransactionsResponse(error=code))
