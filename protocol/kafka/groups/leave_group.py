"""LeaveGroup (13), versions 0 to 5. Before 3 it is about one member, whose error is the answer's."""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse, LeavingMember

_API: Final = "leave_group"
_MEMBERS_FROM: Final = 3


def decode_request(version: int, body: memoryview) -> LeaveGroupRequest:
    """Raises DecodeError."""
    request = entities.read_request(_API, version, body)
    if version < _MEMBERS_FROM:
        return LeaveGroupRequest(request.group_id, [LeavingMember(request.member_id)])
    return LeaveGroupRequest(
        request.group_id,
        [
            LeavingMember(each.member_id, each.group_instance_id, getattr(each, "reason", None))
            for each in request.members
        ],
    )


def encode_response(version: int, response: LeaveGroupResponse) -> bytes:
    """What became of each, where the version has room for it."""
    schema = entities.response_schema(_API, version)
    error = response.error
    members: tuple[Any, ...] = ()
    if version >= _MEMBERS_FROM:
        members = tuple(
            schema.MemberResponse(
                member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=each.error
            )
            for each in response.members
        )
    elif error == ErrorCode.NONE and response.members:
        error = response.members[0].error
    return entities.write(
        entities.make(schema.LeaveGroupResponse, throttle_time=entities.NO_THROTTLE, error_code=error, members=members)
    )


def encode_error(version: int, request: LeaveGroupRequest, code: ErrorCode, message: str) -> bytes:
    """The refusal of all."""
    return encode_response(version, LeaveGroupResponse(code))
