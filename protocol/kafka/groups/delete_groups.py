"""DeleteGroups (42), versions 0-2, which have the same fields."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import INT16, NO_THROTTLE, STRING, Array, Message, rows
from barnabas.protocol.messages.groups.groups import DeleteGroupResult, DeleteGroupsRequest, DeleteGroupsResponse

REQUEST = Message(2, DeleteGroupsRequest, group_ids=Array(STRING, make=tuple))
RESPONSE = Message(2, throttle_ms=NO_THROTTLE, results=rows(group_id=STRING, error=INT16))

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: DeleteGroupsRequest, code: ErrorCode, message: str) -> bytes:
    """The code for every group."""
    return RESPONSE.write(version, DeleteGroupsResponse([DeleteGroupResult(each, code) for each in request.group_ids]))
