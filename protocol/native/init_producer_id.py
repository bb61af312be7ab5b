"""init_producer_id (22): an id for an idempotent producer.

request   (empty map)
response  producer_id int, producer_epoch int
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.messages.data.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.native.fields import INT16, INT64, field, integer


def encode_request(request: InitProducerIdRequest) -> dict[str, Any]:
    """The body of a request."""
    return {}


def decode_request(body: dict[str, Any]) -> InitProducerIdRequest:
    """Never fails: there is nothing to read."""
    return InitProducerIdRequest()


def encode_response(response: InitProducerIdResponse) -> dict[str, Any]:
    """The body of an answer."""
    return {"producer_id": response.producer_id, "producer_epoch": response.producer_epoch}


def decode_response(body: dict[str, Any]) -> InitProducerIdResponse:
    """Raises DecodeError, naming the field."""
    return InitProducerIdResponse(
        integer(field(body, "producer_id"), "producer_id", INT64),
        integer(field(body, "producer_epoch"), "producer_epoch", INT16),
    )
