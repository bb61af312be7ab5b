"""AlterConfigs (33), versions 0-2: the whole set of a resource's configs; configs left out are removed.

Kafka has deprecated it for IncrementalAlterConfigs (44), which the native dialect has under this key.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    BOOL,
    FAILURE_MESSAGE,
    INT8,
    INT16,
    NO_THROTTLE,
    NULLABLE_STRING,
    STRING,
    Array,
    Computed,
    Field,
    Message,
    Struct,
    rows,
)
from barnabas.protocol.messages.cluster.configs import (
    OP_SET,
    AlterConfigOp,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResponse,
    AlterConfigsResult,
    ConfigResource,
)


def resources(operation: Struct) -> Array:
    """Return the field of the resources with their operations, which IncrementalAlterConfigs has as well."""
    return rows(
        lambda type, name, operations: AlterConfigsResource(ConfigResource(type, name), operations),
        type=INT8,
        name=STRING,
        operations=Array(operation),
    )


REQUEST = Message(
    2,
    lambda resources, validate_only: AlterConfigsRequest(resources, validate_only, replace=True),
    resources=resources(
        Struct(lambda name, value: AlterConfigOp(name, OP_SET, value), name=STRING, value=NULLABLE_STRING)
    ),
    validate_only=BOOL,
)
RESULTS: Final[dict[str, Field]] = {
    "throttle_ms": NO_THROTTLE,
    "results": rows(
        error=INT16,
        message=FAILURE_MESSAGE,
        type=Computed(INT8, lambda result: result.resource.type),
        name=Computed(STRING, lambda result: result.resource.name),
    ),
}
"""The fields of an answer: a row for each resource."""
RESPONSE = Message(2, **RESULTS)

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: AlterConfigsRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every resource."""
    return RESPONSE.write(version, refused(request, code, message))


def refused(request: AlterConfigsRequest, code: ErrorCode, message: str) -> AlterConfigsResponse:
    """Return the same refusal for every resource."""
    return AlterConfigsResponse([AlterConfigsResult(each.resource, code, message) for each in request.resources])
