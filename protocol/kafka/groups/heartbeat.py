"""Heartbeat (12), versions 0 to 4."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse

_API: Final = "heartbeat"


def decode_request(version: int, body: memoryview) -> HeartbeatRequest:
    """Raises DecodeError."""
    request = entities.read_request(_API, version, body)
    return HeartbeatRequest(
        group_id=request.group_id,
        generation=request.generation_id,
        member_id=request.member_id,
        group_instance_id=getattr(request, "group_instance_id", None),
    )


def encode_response(version: int, response: HeartbeatResponse) -> bytes:
    """One code."""
    schema = entities.response_schema(_API, version)
    return entities.write(
        entities.make(schema.HeartbeatResponse, throttle_time=entities.NO_THROTTLE, error_code=response.error)
    )


def encode_error(version: int, request: HeartbeatRequest, code: ErrorCode, message: str) -> bytes:
    """The refusal."""
    return encode_response(version, HeartbeatResponse(code))
