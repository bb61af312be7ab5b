"""SyncGroup (14), versions 0 to 5. From 5 on protocol type and name are in both directions."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse

_API: Final = "sync_group"
_PROTOCOL_FROM: Final = 5


def decode_request(version: int, body: memoryview) -> SyncGroupRequest:
    """Raises DecodeError, BrokerError where a field is null that this version must have."""
    request = entities.read_request(_API, version, body)
    if version >= _PROTOCOL_FROM and None in (request.protocol_type, request.protocol_name):
        raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "protocol type and name are not there")
    return SyncGroupRequest(
        group_id=request.group_id,
        generation=request.generation_id,
        member_id=request.member_id,
        group_instance_id=getattr(request, "group_instance_id", None),
        protocol_type=getattr(request, "protocol_type", None),
        protocol=getattr(request, "protocol_name", None),
        assignments={each.member_id: each.assignment for each in request.assignments},
    )


def encode_response(version: int, response: SyncGroupResponse) -> bytes:
    """The assignment as it came."""
    schema = entities.response_schema(_API, version)
    return entities.write(
        entities.make(
            schema.SyncGroupResponse,
            throttle_time=entities.NO_THROTTLE,
            error_code=response.error,
            protocol_type=response.protocol_type,
            protocol_name=response.protocol,
            assignment=response.assignment,
        )
    )


def encode_error(version: int, request: SyncGroupRequest | None, code: ErrorCode, message: str) -> bytes:
    """The refusal."""
    return encode_response(version, SyncGroupResponse(code))
