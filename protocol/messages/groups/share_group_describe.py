"""ShareGroupDescribe (key 77): share groups with their members, for administration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.authorized_operations import NOT_ASKED
from barnabas.protocol.messages.groups.consumer_group_describe import AssignedTopic


@dataclass(slots=True)
class ShareGroupDescribeRequest:
    """Group ids."""

    group_ids: Sequence[str]
    include_authorized_operations: bool = False


class ShareGroupMemberDescription(NamedTuple):
    """One member."""

    member_id: str
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    topic_names: Sequence[str]
    assignment: Sequence[AssignedTopic]


class ShareGroupDescription(NamedTuple):
    """`state` by Kafka's name: Empty, Stable, Dead."""

    group_id: str
    state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor: str = ""
    members: Sequence[ShareGroupMemberDescription] = ()
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    authorized_operations: int = NOT_ASKED


@dataclass(slots=True)
class ShareGroupDescribeResponse:
    """In the order of the request."""

    groups: list[ShareGroupDescription]
