"""The client's side of DescribeGroups: the operations on groups that the broker authorizes. Version 3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.client_requests import answer_body, request_frame
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

GROUPS_VERSION: Final = 3
"""The first one with authorized operations. An unknown group is no error in it."""


class GroupAccess(NamedTuple):
    """A group's error and the operations that this client may perform on it, as Kafka's bit field."""

    name: str
    error: ErrorCode
    operations: int


def group_access_request(correlation_id: int, client_id: str, groups: Sequence[str]) -> bytes:
    """Return a DescribeGroups request for authorized operations as a whole frame."""
    body = DescribeGroupsRequest(groups=groups, include_authorized_operations=True).encode(GROUPS_VERSION)
    return request_frame(ApiKey.DESCRIBE_GROUPS, GROUPS_VERSION, correlation_id, client_id, body)


def group_access_answer(correlation_id: int, answer: bytes) -> list[GroupAccess]:
    """Read a response without its size field. Raises DecodeError."""
    body = answer_body(correlation_id, answer)
    found = DescribeGroupsResponse.decode(GROUPS_VERSION, memoryview(answer)[body.position :])
    return [GroupAccess(each.group_id, each.error, each.authorized_operations) for each in found.groups]
