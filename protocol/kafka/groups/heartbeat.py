"""Heartbeat (12), versions 0 to 4."""

from __future__ import annotations

from functools import partial

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import INT16, INT32, NO_THROTTLE, NULLABLE_STRING, STRING, Message, since
from barnabas.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse

REQUEST = Message(
    4,
    partial(HeartbeatRequest, group_instance_id=None),
    group_id=STRING,
    generation=INT32,
    member_id=STRING,
    group_instance_id=since(3, NULLABLE_STRING),
)
RESPONSE = Message(4, throttle_ms=since(1, NO_THROTTLE), error=INT16)

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: HeartbeatRequest, code: ErrorCode, message: str) -> bytes:
    """The refusal."""
    return RESPONSE.write(version, HeartbeatResponse(code))
