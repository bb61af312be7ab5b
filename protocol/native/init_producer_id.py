"""init_producer_id (22): an id for an idempotent or transactional producer.

request   transactional_id str or nil, transaction_timeout_ms int; producer_id int, producer_epoch int: the
          present ones, two_phase bool: no timeout aborts a transaction, which needs transaction.two.phase.commit.enable
response  error, producer_id int, producer_epoch int

Every field of the request may be left out; an idempotent producer's is an empty map.
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.messages.data.init_producer_id import (
    DEFAULT_TRANSACTION_TIMEOUT_MS,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas.protocol.native.fields import INT16, INT32, INT64, boolean, error_code, field, integer, optional_text


def encode_request(request: InitProducerIdRequest) -> dict[str, Any]:
    """The body of a request."""
    if request.transactional_id is None:
        return {}
    body: dict[str, Any] = {
        "transactional_id": request.transactional_id,
        "transaction_timeout_ms": request.transaction_timeout_ms,
        "producer_id": request.producer_id,
        "producer_epoch": request.producer_epoch,
    }
    if request.enable_2pc:
        body["two_phase"] = True
    return body


def decode_request(body: dict[str, Any]) -> InitProducerIdRequest:
    """Raises DecodeError, naming the field."""
    return InitProducerIdRequest(
        transactional_id=optional_text(field(body, "transactional_id", None), "transactional_id"),
        producer_id=integer(field(body, "producer_id", -1), "producer_id", INT64),
        producer_epoch=integer(field(body, "producer_epoch", -1), "producer_epoch", INT16),
        transaction_timeout_ms=integer(
            field(body, "transaction_timeout_ms", DEFAULT_TRANSACTION_TIMEOUT_MS), "transaction_timeout_ms", INT32
        ),
        enable_2pc=boolean(field(body, "two_phase", False), "two_phase"),
    )


def encode_response(response: InitProducerIdResponse) -> dict[str, Any]:
    """The body of an answer."""
    return {
        "error": int(response.error),
        "producer_id": response.producer_id,
        "producer_epoch": response.producer_epoch,
    }


def decode_response(body: dict[str, Any]) -> InitProducerIdResponse:
    """Raises DecodeError, naming the field."""
    return InitProducerIdResponse(
        producer_id=integer(field(body, "producer_id"), "producer_id", INT64),
        producer_epoch=integer(field(body, "producer_epoch"), "producer_epoch", INT16),
        error=error_code(field(body, "error", 0), "error"),
    )
