"""DescribeGroups (key 15): groups with their members, for administration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.authorized_operations import NOT_ASKED


@dataclass(slots=True)
class DescribeGroupsRequest:
    """`unknown_is_error`: an unknown group is GROUP_ID_NOT_FOUND (version 6 and later) instead of Dead."""

    groups: Sequence[str]
    include_authorized_operations: bool = False
    unknown_is_error: bool = False


class DescribedMember(NamedTuple):
    """`metadata` and `assignment` are the clients' bytes."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class DescribedGroup(NamedTuple):
    """`state` by Kafka's name. `protocol` is the assignor, empty until one is selected."""

    group_id: str
    state: str = ""
    protocol_type: str = ""
    protocol: str = ""
    members: Sequence[DescribedMember] = ()
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    authorized_operations: int = NOT_ASKED


@dataclass(slots=True)
class DescribeGroupsResponse:
    """In the order of the request."""

    groups: list[DescribedGroup]
