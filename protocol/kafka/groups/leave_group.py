"""LeaveGroup (13), versions 0 to 5. Before 3 it is about one member, whose error is the answer's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    INT16,
    NO_THROTTLE,
    NULLABLE_STRING,
    STRING,
    Array,
    Message,
    Struct,
    since,
    until,
)
from barnabas.protocol.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse, LeavingMember

_MEMBERS_FROM: Final = 3


def _request(group_id: str, member_id: str = "", members: Sequence[LeavingMember] | None = None) -> LeaveGroupRequest:
    return LeaveGroupRequest(group_id, [LeavingMember(member_id)] if members is None else members)


_LEAVING = Struct(LeavingMember, member_id=STRING, group_instance_id=NULLABLE_STRING, reason=since(5, NULLABLE_STRING))
REQUEST = Message(
    4, _request, group_id=STRING, member_id=until(2, STRING), members=since(_MEMBERS_FROM, Array(_LEAVING))
)
_LEFT = Struct(member_id=STRING, group_instance_id=NULLABLE_STRING, error=INT16)
RESPONSE = Message(4, throttle_ms=since(1, NO_THROTTLE), error=INT16, members=since(_MEMBERS_FROM, Array(_LEFT)))

decode_request = REQUEST.read


def encode_response(version: int, response: LeaveGroupResponse) -> bytes:
    """The result of each member, where the version has a field for it."""
    if version < _MEMBERS_FROM and response.error == ErrorCode.NONE and response.members:
        response = LeaveGroupResponse(response.members[0].error)
    return RESPONSE.write(version, response)


def encode_error(version: int, request: LeaveGroupRequest, code: ErrorCode, message: str) -> bytes:
    """The refusal of all."""
    return RESPONSE.write(version, LeaveGroupResponse(code))
