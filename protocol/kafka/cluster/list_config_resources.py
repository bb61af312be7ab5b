"""ListConfigResources (74), versions 0-1: version 0 lists client metrics only; an empty list of types means all."""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import INT8, INT16, NO_THROTTLE, STRING, Array, Message, rows, since
from barnabas.protocol.messages.cluster.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

_CLIENT_METRICS: Final = 16
_ALL_TYPES: Final = (2, 4, 8, _CLIENT_METRICS, 32)


def _request(types: list[int] | None = None) -> ListConfigResourcesRequest:
    return ListConfigResourcesRequest([_CLIENT_METRICS] if types is None else types or list(_ALL_TYPES))


REQUEST = Message(0, _request, types=since(1, Array(INT8)))
RESPONSE = Message(0, throttle_ms=NO_THROTTLE, error=INT16, resources=rows(name=STRING, type=since(1, INT8)))

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: Any, code: ErrorCode, message: str) -> bytes:
    """A refusal."""
    return RESPONSE.write(version, ListConfigResourcesResponse([], code))
