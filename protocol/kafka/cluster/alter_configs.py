"""AlterConfigs (33), versions 0-2: the whole set of a resource's configs; what is not in it is taken away.

Kafka has deprecated it for IncrementalAlterConfigs (44), which the native dialect has under this key.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.cluster.configs import (
    OP_SET,
    AlterConfigOp,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResponse,
    AlterConfigsResult,
    ConfigResource,
)

_API: Final = "alter_configs"


def decode_request(version: int, body: memoryview) -> AlterConfigsRequest:
    """Raises DecodeError."""
    request = entities.read_request(_API, version, body)
    resources = [
        AlterConfigsResource(
            ConfigResource(each.resource_type, each.resource_name),
            [AlterConfigOp(config.name, OP_SET, config.value) for config in each.configs],
        )
        for each in request.resources
    ]
    return AlterConfigsRequest(resources, request.validate_only, replace=True)


def encode_response(version: int, response: AlterConfigsResponse) -> bytes:
    """A row for each resource."""
    schema = entities.response_schema(_API, version)
    return entities.write(
        schema.AlterConfigsResponse(throttle_time=entities.NO_THROTTLE, responses=rows_of(schema, response.results))
    )


def encode_error(version: int, request: AlterConfigsRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every resource."""
    return encode_response(version, refused(request, code, message))


def refused(request: AlterConfigsRequest, code: ErrorCode, message: str) -> AlterConfigsResponse:
    """The same refusal for every resource."""
    return AlterConfigsResponse([AlterConfigsResult(each.resource, code, message) for each in request.resources])


def rows_of(schema: Any, results: list[AlterConfigsResult]) -> tuple[Any, ...]:
    """Answers of this API or of IncrementalAlterConfigs, by the classes of its version."""
    return tuple(
        schema.AlterConfigsResourceResponse(
            error_code=result.error,
            error_message=None if result.error is ErrorCode.NONE else entities.sentence(result.message),
            resource_type=result.resource.type,
            resource_name=result.resource.name,
        )
        for result in results
    )
