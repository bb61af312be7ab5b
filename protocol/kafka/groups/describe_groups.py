"""DescribeGroups (15), versions 0 to 6. From 6 on a group that there is not is an error with a sentence."""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.groups.describe_groups import (
    DescribedGroup,
    DescribedMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

_API: Final = "describe_groups"
_UNKNOWN_IS_ERROR_FROM: Final = 6


def decode_request(version: int, body: memoryview) -> DescribeGroupsRequest:
    """Raises DecodeError."""
    request = entities.read_request(_API, version, body)
    return DescribeGroupsRequest(
        request.groups,
        include_authorized_operations=getattr(request, "include_authorized_operations", False),
        unknown_is_error=version >= _UNKNOWN_IS_ERROR_FROM,
    )


def encode_response(version: int, response: DescribeGroupsResponse) -> bytes:
    """A row for each group."""
    schema = entities.response_schema(_API, version)
    groups = tuple(
        entities.make(
            schema.DescribedGroup,
            error_code=group.error,
            error_message=entities.sentence(group.message),
            group_id=group.group_id,
            group_state=group.state,
            protocol_type=group.protocol_type,
            protocol_data=group.protocol,
            members=tuple(_member(schema, each) for each in group.members),
            authorized_operations=group.authorized_operations,
        )
        for group in response.groups
    )
    return entities.write(
        entities.make(schema.DescribeGroupsResponse, throttle_time=entities.NO_THROTTLE, groups=groups)
    )


def encode_error(version: int, request: DescribeGroupsRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every group."""
    groups = [DescribedGroup(group_id, error=code, message=message) for group_id in request.groups]
    return encode_response(version, DescribeGroupsResponse(groups))


def _member(schema: Any, member: DescribedMember) -> Any:
    return entities.make(
        schema.DescribedGroupMember,
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata,
        member_assignment=member.assignment,
    )
