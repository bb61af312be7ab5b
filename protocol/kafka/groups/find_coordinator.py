"""FindCoordinator (10), versions 0-6.

Version 0 takes groups only; 1 added the type of the key and the error's message, 4 several keys in one request, 5
nothing that concerns a single node, 6 share groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    INT8,
    INT16,
    INT32,
    MESSAGE,
    NO_THROTTLE,
    STRING,
    Array,
    Message,
    rows,
    since,
    until,
)
from barnabas.protocol.messages.groups.find_coordinator import (
    GROUP_KEY,
    CoordinatorResult,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_BATCHES_FROM: Final = 4
_SHARE_KEYS_FROM: Final = 6


def _request(key: str = "", key_type: int = GROUP_KEY, keys: Sequence[str] | None = None) -> FindCoordinatorRequest:
    return FindCoordinatorRequest((key,) if keys is None else keys, key_type)


REQUEST = Message(
    3, _request, key=until(3, STRING), key_type=since(1, INT8), keys=since(_BATCHES_FROM, Array(STRING, make=tuple))
)
RESPONSE = Message(
    3,
    throttle_ms=NO_THROTTLE,
    coordinators=rows(key=STRING, node_id=INT32, host=STRING, port=INT32, error=INT16, message=MESSAGE),
)
RESPONSE_OF_ONE = Message(
    3, throttle_ms=since(1, NO_THROTTLE), error=INT16, message=since(1, MESSAGE), node_id=INT32, host=STRING, port=INT32
)


def decode_request(version: int, body: memoryview) -> FindCoordinatorRequest:
    """Raises DecodeError."""
    request: FindCoordinatorRequest = REQUEST.read(version, body)
    request.takes_share_keys = version >= _SHARE_KEYS_FROM
    return request


def encode_response(version: int, response: FindCoordinatorResponse) -> bytes:
    """A node for each key; before version 4 for the only one."""
    if version >= _BATCHES_FROM:
        return RESPONSE.write(version, response)
    (result,) = response.coordinators
    return RESPONSE_OF_ONE.write(version, result)


def encode_error(version: int, request: FindCoordinatorRequest, code: ErrorCode, message: str) -> bytes:
    """The code for every key."""
    results = [CoordinatorResult(key, code, message) for key in request.keys]
    return encode_response(version, FindCoordinatorResponse(results))
