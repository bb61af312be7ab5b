"""DescribeGroups (15), versions 0-6: classic groups with their members."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.kafka.client.fields import ERROR
from barnabas.protocol.kafka.groups import describe_groups
from barnabas.protocol.kafka.schema import BYTES, INT32, NULLABLE_STRING, STRING, Array, Message, Struct, rows, since
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.describe_groups import DescribedGroup, DescribedMember, DescribeGroupsResponse


def _member(
    member_id: str,
    client_id: str,
    client_host: str,
    metadata: bytes,
    assignment: bytes,
    group_instance_id: str | None = None,
) -> DescribedMember:
    return DescribedMember(member_id, group_instance_id, client_id, client_host, metadata, assignment)


_MEMBER: Final = Struct(
    _member,
    member_id=STRING,
    group_instance_id=since(4, NULLABLE_STRING),
    client_id=STRING,
    client_host=STRING,
    metadata=BYTES,
    assignment=BYTES,
)
DESCRIBE_GROUPS: Final = ClientApi(
    ApiKey.DESCRIBE_GROUPS,
    0,
    6,
    describe_groups.REQUEST,
    Message(
        5,
        DescribeGroupsResponse,
        _throttle_ms=since(1, INT32),
        groups=rows(
            DescribedGroup,
            error=ERROR,
            message=since(6, NULLABLE_STRING),
            group_id=STRING,
            state=STRING,
            protocol_type=STRING,
            protocol=STRING,
            members=Array(_MEMBER),
            authorized_operations=since(3, INT32),
        ),
    ),
)
"""Writes a DescribeGroupsRequest, reads a DescribeGroupsResponse."""
