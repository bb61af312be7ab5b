"""SyncGroup (14), versions 0 to 5. From 5 on protocol type and name are in both directions."""

from __future__ import annotations

from functools import partial
from typing import Final

from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.kafka.schema import (
    BYTES,
    INT16,
    INT32,
    NO_THROTTLE,
    NULLABLE_STRING,
    STRING,
    Array,
    Message,
    Struct,
    since,
)
from barnabas.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse

_PROTOCOL_FROM: Final = 5

_ASSIGNMENT = Struct(lambda member_id, assignment: (member_id, assignment), member_id=STRING, assignment=BYTES)
REQUEST = Message(
    4,
    partial(SyncGroupRequest, group_instance_id=None, protocol_type=None, protocol=None),
    group_id=STRING,
    generation=INT32,
    member_id=STRING,
    group_instance_id=since(3, NULLABLE_STRING),
    protocol_type=since(_PROTOCOL_FROM, NULLABLE_STRING),
    protocol=since(_PROTOCOL_FROM, NULLABLE_STRING),
    assignments=Array(_ASSIGNMENT, make=dict),
)
RESPONSE = Message(
    4,
    throttle_ms=since(1, NO_THROTTLE),
    error=INT16,
    protocol_type=since(_PROTOCOL_FROM, NULLABLE_STRING),
    protocol=since(_PROTOCOL_FROM, NULLABLE_STRING),
    assignment=BYTES,
)

encode_response = RESPONSE.write


def decode_request(version: int, body: memoryview) -> SyncGroupRequest:
    """Raises DecodeError; BrokerError where protocol type or name is null in a version that has them."""
    request: SyncGroupRequest = REQUEST.read(version, body)
    if version >= _PROTOCOL_FROM and None in (request.protocol_type, request.protocol):
        raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "protocol type and name are not there")
    return request


def encode_error(version: int, request: SyncGroupRequest | None, code: ErrorCode, message: str) -> bytes:
    """The refusal."""
    return RESPONSE.write(version, SyncGroupResponse(code))
