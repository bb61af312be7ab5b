"""EndTxn (26), versions 0-5.

From version 5 on the producer gets a new epoch for each transaction, in the answer (KIP-890). Below version 2,
PRODUCER_FENCED is INVALID_PRODUCER_EPOCH, as in Kafka.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import BOOL, INT16, INT64, NO_THROTTLE, STRING, Message, since, until
from barnabas.protocol.kafka.transactions.old_errors import ERROR_WITHOUT_FENCING
from barnabas.protocol.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse

_EPOCH_BUMP_FROM: Final = 5

REQUEST = Message(3, EndTxnRequest, transactional_id=STRING, producer_id=INT64, producer_epoch=INT16, is_commit=BOOL)
RESPONSE = Message(
    3,
    throttle_ms=NO_THROTTLE,
    error=since(2, INT16),
    error_without_fencing=until(1, ERROR_WITHOUT_FENCING),
    producer_id=since(_EPOCH_BUMP_FROM, INT64),
    producer_epoch=since(_EPOCH_BUMP_FROM, INT16),
)

encode_response = RESPONSE.write


def decode_request(version: int, body: memoryview) -> EndTxnRequest:
    """Raises DecodeError."""
    request: EndTxnRequest = REQUEST.read(version, body)
    request.bumps_epoch = version >= _EPOCH_BUMP_FROM
    return request


def encode_error(version: int, request: EndTxnRequest, code: ErrorCode, message: str) -> bytes:
    """The code, and no id."""
    return RESPONSE.write(version, EndTxnResponse(code))
