"""DescribeTransactions (65), version 0."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import INT16, INT32, INT64, NO_THROTTLE, STRING, Array, Message, Struct, rows
from barnabas.protocol.messages.transactions.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionDescription,
)

REQUEST = Message(0, DescribeTransactionsRequest, transactional_ids=Array(STRING))

_TRANSACTION = Struct(
    error=INT16,
    transactional_id=STRING,
    state=STRING,
    timeout_ms=INT32,
    start_time_ms=INT64,
    producer_id=INT64,
    producer_epoch=INT16,
    topics=rows(name=STRING, partitions=Array(INT32)),
)
RESPONSE = Message(0, throttle_ms=NO_THROTTLE, transactions=Array(_TRANSACTION))

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: DescribeTransactionsRequest, code: ErrorCode, message: str) -> bytes:
    """The code for every transactional id."""
    refused = [TransactionDescription(each, code) for each in request.transactional_ids]
    return RESPONSE.write(version, DescribeTransactionsResponse(refused))
