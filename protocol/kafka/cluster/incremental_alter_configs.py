"""IncrementalAlterConfigs (44), versions 0-1: set, delete, append to and subtract from single configs of a resource."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.cluster.alter_configs import RESULTS, refused, resources
from barnabas.protocol.kafka.schema import BOOL, INT8, NULLABLE_STRING, STRING, Message, Struct
from barnabas.protocol.messages.cluster.configs import AlterConfigOp, AlterConfigsRequest

REQUEST = Message(
    1,
    AlterConfigsRequest,
    resources=resources(Struct(AlterConfigOp, name=STRING, operation=INT8, value=NULLABLE_STRING)),
    validate_only=BOOL,
)
RESPONSE = Message(1, **RESULTS)

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: AlterConfigsRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every resource."""
    return RESPONSE.write(version, refused(request, code, message))
