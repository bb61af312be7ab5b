"""AddOffsetsToTxn (25), versions 0-4. Below version 2, PRODUCER_FENCED is INVALID_PRODUCER_EPOCH, as in Kafka."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import INT16, INT64, NO_THROTTLE, STRING, Message, since, until
from barnabas.protocol.kafka.transactions.old_errors import ERROR_WITHOUT_FENCING
from barnabas.protocol.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

REQUEST = Message(
    3,
    AddOffsetsToTxnRequest,
    transactional_id=STRING,
    producer_id=INT64,
    producer_epoch=INT16,
    group_id=STRING,
)
RESPONSE = Message(
    3, throttle_ms=NO_THROTTLE, error=since(2, INT16), error_without_fencing=until(1, ERROR_WITHOUT_FENCING)
)

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: AddOffsetsToTxnRequest, code: ErrorCode, message: str) -> bytes:
    """The code."""
    return RESPONSE.write(version, AddOffsetsToTxnResponse(code))
