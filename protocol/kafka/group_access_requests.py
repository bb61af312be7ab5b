"""The client's side of DescribeGroups: the operations on groups that the broker authorizes. Version 3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.client.fields import known_error
from barnabas.protocol.kafka.client_requests import answer_body, request_frame
from barnabas.protocol.kafka.groups import describe_groups
from barnabas.protocol.kafka.schema import BYTES, INT16, INT32, STRING, Message, rows
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.describe_groups import DescribeGroupsRequest

GROUPS_VERSION: Final = 3
"""The first one with authorized operations. An unknown group is no error in it."""

_FLEXIBLE_FROM: Final = 5


class GroupAccess(NamedTuple):
    """A group's error and the operations that this client may perform on it, as Kafka's bit field."""

    name: str
    error: ErrorCode
    operations: int


def _group(error: int, name: str, operations: int, **_: Any) -> GroupAccess:
    return GroupAccess(name, known_error(error), operations)


def _groups(groups: list[GroupAccess]) -> list[GroupAccess]:
    return groups


_ANSWER: Final = Message(
    _FLEXIBLE_FROM,
    _groups,
    _throttle_ms=INT32,
    groups=rows(
        _group,
        error=INT16,
        name=STRING,
        state=STRING,
        protocol_type=STRING,
        protocol=STRING,
        members=rows(dict, member_id=STRING, client_id=STRING, client_host=STRING, metadata=BYTES, assignment=BYTES),
        operations=INT32,
    ),
)


def group_access_request(correlation_id: int, client_id: str, groups: Sequence[str]) -> bytes:
    """Return a DescribeGroups request for authorized operations as a whole frame."""
    body = describe_groups.REQUEST.write(GROUPS_VERSION, DescribeGroupsRequest(tuple(groups), True))
    return request_frame(ApiKey.DESCRIBE_GROUPS, GROUPS_VERSION, correlation_id, client_id, body)


def group_access_answer(correlation_id: int, answer: bytes) -> list[GroupAccess]:
    """Read a response without its size field. Raises DecodeError."""
    body = answer_body(correlation_id, answer)
    found: list[GroupAccess] = _ANSWER.read(GROUPS_VERSION, memoryview(answer)[body.position :])
    return found
