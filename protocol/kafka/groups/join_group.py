"""JoinGroup (11), versions 0 to 9.

0    the session timeout is the rebalance timeout as well
4    the first join is answered MEMBER_ID_REQUIRED
5    group_instance_id
7    the protocol type in the answer; without a protocol its name is null, before it is empty
9    skip_assignment
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.groups.join_group import GroupProtocol, JoinGroupRequest, JoinGroupResponse

_API: Final = "join_group"
_REBALANCE_TIMEOUT_FROM: Final = 1
_KNOWN_MEMBER_ID_FROM: Final = 4
_NULL_PROTOCOL_FROM: Final = 7
_SKIP_ASSIGNMENT_FROM: Final = 9


def decode_request(version: int, body: memoryview) -> JoinGroupRequest:
    """Raises DecodeError."""
    request = entities.read_request(_API, version, body)
    session_timeout_ms = entities.milliseconds(request.session_timeout)
    return JoinGroupRequest(
        group_id=request.group_id,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=(
            entities.milliseconds(request.rebalance_timeout)
            if version >= _REBALANCE_TIMEOUT_FROM
            else session_timeout_ms
        ),
        member_id=request.member_id,
        group_instance_id=getattr(request, "group_instance_id", None),
        protocol_type=request.protocol_type,
        protocols=[GroupProtocol(each.name, each.metadata) for each in request.protocols],
        reason=getattr(request, "reason", None),
        requires_known_member_id=version >= _KNOWN_MEMBER_ID_FROM,
        can_skip_assignment=version >= _SKIP_ASSIGNMENT_FROM,
    )


def encode_response(version: int, response: JoinGroupResponse) -> bytes:
    """The members only in the leader's."""
    schema = entities.response_schema(_API, version)
    protocol = response.protocol
    return entities.write(
        entities.make(
            schema.JoinGroupResponse,
            throttle_time=entities.NO_THROTTLE,
            error_code=response.error,
            generation_id=response.generation,
            protocol_type=response.protocol_type,
            protocol_name="" if protocol is None and version < _NULL_PROTOCOL_FROM else protocol,
            leader=response.leader,
            skip_assignment=response.skip_assignment,
            member_id=response.member_id,
            members=tuple(
                entities.make(
                    schema.JoinGroupResponseMember,
                    member_id=each.member_id,
                    group_instance_id=each.group_instance_id,
                    metadata=each.metadata,
                )
                for each in response.members
            ),
        )
    )


def encode_error(version: int, request: JoinGroupRequest, code: ErrorCode, message: str) -> bytes:
    """The refusal, with the member id of the request."""
    return encode_response(version, JoinGroupResponse(code, request.member_id))
