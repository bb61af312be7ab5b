"""FindCoordinator (10), versions 0-6.

Version 0 asks for groups only; 1 brought the type of the key and the error's message, 4 several keys in one request, 5
nothing that concerns one node, 6 share groups.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.groups.find_coordinator import (
    GROUP_KEY,
    CoordinatorResult,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_API: Final = "find_coordinator"

_BATCHES_FROM: Final = 4


def decode_request(version: int, body: memoryview) -> FindCoordinatorRequest:
    """Raises DecodeError."""
    request = entities.read_request(_API, version, body)
    keys = request.coordinator_keys if version >= _BATCHES_FROM else (request.key,)
    return FindCoordinatorRequest(keys, getattr(request, "key_type", GROUP_KEY))


def encode_response(version: int, response: FindCoordinatorResponse) -> bytes:
    """A node for each key, or before version 4 the one."""
    schema = entities.response_schema(_API, version)
    if version >= _BATCHES_FROM:
        coordinators = tuple(schema.Coordinator(key=each.key, **_node(each)) for each in response.coordinators)
        return entities.write(
            schema.FindCoordinatorResponse(throttle_time=entities.NO_THROTTLE, coordinators=coordinators)
        )
    (result,) = response.coordinators
    return entities.write(
        entities.make(schema.FindCoordinatorResponse, throttle_time=entities.NO_THROTTLE, **_node(result))
    )


def encode_error(version: int, request: FindCoordinatorRequest, code: ErrorCode, message: str) -> bytes:
    """The code for every key."""
    return encode_response(
        version, FindCoordinatorResponse([CoordinatorResult(key, code, message) for key in request.keys])
    )


def _node(result: CoordinatorResult) -> dict[str, Any]:
    return {
        "error_code": result.error,
        "error_message": entities.sentence(result.message),
        "node_id": result.node_id,
        "host": result.host,
        "port": result.port,
    }
