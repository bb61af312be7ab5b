"""ListConfigResources (74), versions 0-1: version 0 lists client metrics only; no types asks for all."""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.cluster.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

_API: Final = "list_config_resources"
_CLIENT_METRICS: Final = 16
_ALL_TYPES: Final = (2, 4, 8, _CLIENT_METRICS, 32)


def decode_request(version: int, body: memoryview) -> ListConfigResourcesRequest:
    """Raises DecodeError."""
    request = entities.read_request(_API, version, body)
    if version == 0:
        return ListConfigResourcesRequest([_CLIENT_METRICS])
    return ListConfigResourcesRequest(list(request.resource_types or _ALL_TYPES))


def encode_response(version: int, response: ListConfigResourcesResponse) -> bytes:
    """The resources; version 0 has no types."""
    schema = entities.response_schema(_API, version)
    resources = tuple(
        entities.make(schema.ConfigResource, resource_name=each.name, resource_type=each.type)
        for each in response.resources
    )
    return _encode(schema, ErrorCode.NONE, resources)


def encode_error(version: int, request: Any, code: ErrorCode, message: str) -> bytes:
    """A refusal."""
    return _encode(entities.response_schema(_API, version), code, ())


def _encode(schema: Any, code: ErrorCode, resources: tuple[Any, ...]) -> bytes:
    return entities.write(
        schema.ListConfigResourcesResponse(
            throttle_time=entities.NO_THROTTLE, error_code=code, config_resources=resources
        )
    )
