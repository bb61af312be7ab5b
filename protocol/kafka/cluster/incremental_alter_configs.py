"""IncrementalAlterConfigs (44), versions 0-1: set, delete, append to and subtract from single configs of a resource."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.kafka.cluster.alter_configs import refused, rows_of
from barnabas.protocol.messages.cluster.configs import (
    AlterConfigOp,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResponse,
    ConfigResource,
)

_API: Final = "incremental_alter_configs"


def decode_request(version: int, body: memoryview) -> AlterConfigsRequest:
    """Raises DecodeError."""
    request = entities.read_request(_API, version, body)
    resources = [
        AlterConfigsResource(
            ConfigResource(each.resource_type, each.resource_name),
            [AlterConfigOp(config.name, config.config_operation, config.value) for config in each.configs],
        )
        for each in request.resources
    ]
    return AlterConfigsRequest(resources, request.validate_only)


def encode_response(version: int, response: AlterConfigsResponse) -> bytes:
    """A row for each resource."""
    schema = entities.response_schema(_API, version)
    rows = rows_of(schema, response.results)
    return entities.write(schema.IncrementalAlterConfigsResponse(throttle_time=entities.NO_THROTTLE, responses=rows))


def encode_error(version: int, request: AlterConfigsRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every resource."""
    return encode_response(version, refused(request, code, message))
