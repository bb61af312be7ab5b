"""JoinGroup (11), versions 0 to 9.

0    the session timeout is the rebalance timeout as well
4    the first join is answered MEMBER_ID_REQUIRED
5    group_instance_id
7    the protocol type in the answer; without a protocol its name is null, before it is empty
9    skip_assignment
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    BOOL,
    BYTES,
    INT16,
    INT32,
    NO_THROTTLE,
    NULLABLE_STRING,
    STRING,
    Array,
    Computed,
    Message,
    Struct,
    rows,
    since,
    until,
)
from barnabas.protocol.messages.groups.join_group import GroupProtocol, JoinGroupRequest, JoinGroupResponse

_KNOWN_MEMBER_ID_FROM: Final = 4
_SKIP_ASSIGNMENT_FROM: Final = 9


def _request(session_timeout_ms: int, rebalance_timeout_ms: int | None = None, **fields: Any) -> JoinGroupRequest:
    return JoinGroupRequest(
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=session_timeout_ms if rebalance_timeout_ms is None else rebalance_timeout_ms,
        **({"group_instance_id": None} | fields),
    )


REQUEST = Message(
    6,
    _request,
    group_id=STRING,
    session_timeout_ms=INT32,
    rebalance_timeout_ms=since(1, INT32),
    member_id=STRING,
    group_instance_id=since(5, NULLABLE_STRING),
    protocol_type=STRING,
    protocols=rows(GroupProtocol, name=STRING, metadata=BYTES),
    reason=since(8, NULLABLE_STRING),
)
_MEMBER = Struct(member_id=STRING, group_instance_id=since(5, NULLABLE_STRING), metadata=BYTES)
RESPONSE = Message(
    6,
    throttle_ms=since(2, NO_THROTTLE),
    error=INT16,
    generation=INT32,
    protocol_type=since(7, NULLABLE_STRING),
    protocol_or_empty=until(6, Computed(STRING, lambda response: response.protocol or "")),
    protocol=since(7, NULLABLE_STRING),
    leader=STRING,
    skip_assignment=since(9, BOOL),
    member_id=STRING,
    members=Array(_MEMBER),
)

encode_response = RESPONSE.write


def decode_request(version: int, body: memoryview) -> JoinGroupRequest:
    """Raises DecodeError."""
    request: JoinGroupRequest = REQUEST.read(version, body)
    request.requires_known_member_id = version >= _KNOWN_MEMBER_ID_FROM
    request.can_skip_assignment = version >= _SKIP_ASSIGNMENT_FROM
    return request


def encode_error(version: int, request: JoinGroupRequest, code: ErrorCode, message: str) -> bytes:
    """The refusal, with the member id of the request."""
    return RESPONSE.write(version, JoinGroupResponse(code, request.member_id))
