"""InitProducerId (22), versions 0-5: an id for an idempotent producer; see the handler of that name.

The id and epoch that a producer says it has came with version 3.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_API: Final = "init_producer_id"


def decode_request(version: int, body: memoryview) -> InitProducerIdRequest:
    """Raises DecodeError."""
    request = entities.read_request(_API, version, body)
    return InitProducerIdRequest(
        request.transactional_id, getattr(request, "producer_id", -1), getattr(request, "producer_epoch", -1)
    )


def encode_response(version: int, response: InitProducerIdResponse) -> bytes:
    """The body of an answer."""
    return _encode(version, ErrorCode.NONE, response.producer_id, response.producer_epoch)


def encode_error(version: int, request: InitProducerIdRequest, code: ErrorCode, message: str) -> bytes:
    """The code, and no id."""
    return _encode(version, code, -1, -1)


def _encode(version: int, code: ErrorCode, producer_id: int, producer_epoch: int) -> bytes:
    return entities.write(
        entities.make(
            entities.response_schema(_API, version).InitProducerIdResponse,
            throttle_time=entities.NO_THROTTLE,
            error_code=code,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
        )
    )
