"""DescribeGroups (15), versions 0 to 6. From 6 on an unknown group is an error with a message."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    BOOL,
    BYTES,
    INT16,
    INT32,
    MESSAGE,
    NO_THROTTLE,
    NULLABLE_STRING,
    STRING,
    Array,
    Message,
    Struct,
    since,
)
from barnabas.protocol.messages.groups.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

_UNKNOWN_IS_ERROR_FROM: Final = 6

REQUEST = Message(
    5, DescribeGroupsRequest, groups=Array(STRING, make=tuple), include_authorized_operations=since(3, BOOL)
)
_MEMBER = Struct(
    member_id=STRING,
    group_instance_id=since(4, NULLABLE_STRING),
    client_id=STRING,
    client_host=STRING,
    metadata=BYTES,
    assignment=BYTES,
)
_GROUP = Struct(
    error=INT16,
    message=since(6, MESSAGE),
    group_id=STRING,
    state=STRING,
    protocol_type=STRING,
    protocol=STRING,
    members=Array(_MEMBER),
    authorized_operations=since(3, INT32),
)
RESPONSE = Message(5, throttle_ms=since(1, NO_THROTTLE), groups=Array(_GROUP))

encode_response = RESPONSE.write


def decode_request(version: int, body: memoryview) -> DescribeGroupsRequest:
    """Raises DecodeError."""
    request: DescribeGroupsRequest = REQUEST.read(version, body)
    request.unknown_is_error = version >= _UNKNOWN_IS_ERROR_FROM
    return request


def encode_error(version: int, request: DescribeGroupsRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every group."""
    groups = [DescribedGroup(group_id, error=code, message=message) for group_id in request.groups]
    return RESPONSE.write(version, DescribeGroupsResponse(groups))
