"""InitProducerId (22), versions 0-5: an id for an idempotent or transactional producer; see the handler of that name.

Version 3 added the producer's present id and epoch. Below version 4, PRODUCER_FENCED is INVALID_PRODUCER_EPOCH, as in
Kafka.
"""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import INT16, INT32, INT64, NO_THROTTLE, NULLABLE_STRING, Message, since, until
from barnabas.protocol.kafka.transactions.old_errors import ERROR_WITHOUT_FENCING
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

REQUEST = Message(
    2,
    InitProducerIdRequest,
    transactional_id=NULLABLE_STRING,
    transaction_timeout_ms=INT32,
    producer_id=since(3, INT64),
    producer_epoch=since(3, INT16),
)
RESPONSE = Message(
    2,
    throttle_ms=NO_THROTTLE,
    error=since(4, INT16),
    error_without_fencing=until(3, ERROR_WITHOUT_FENCING),
    producer_id=INT64,
    producer_epoch=INT16,
)

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: InitProducerIdRequest, code: ErrorCode, message: str) -> bytes:
    """The code, and no id."""
    return RESPONSE.write(version, InitProducerIdResponse(-1, -1, code))
