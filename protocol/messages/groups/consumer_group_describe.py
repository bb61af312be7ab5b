"""ConsumerGroupDescribe (key 69): consumer groups with their members, for administration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.authorized_operations import NOT_ASKED


@dataclass(slots=True)
class ConsumerGroupDescribeRequest:
    """Group ids."""

    group_ids: Sequence[str]
    include_authorized_operations: bool = False


class AssignedTopic(NamedTuple):
    """Partitions of one topic."""

    topic_id: bytes
    topic: str
    partitions: Sequence[int]


class ConsumerGroupMemberDescription(NamedTuple):
    """`is_classic`: the member uses the classic protocol."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    topic_names: Sequence[str]
    topic_regex: str | None
    assignment: Sequence[AssignedTopic]
    target: Sequence[AssignedTopic]
    is_classic: bool


class ConsumerGroupDescription(NamedTuple):
    """`state` by Kafka's name: Empty, Assigning, Reconciling, Stable, Dead."""

    group_id: str
    state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor: str = ""
    members: Sequence[ConsumerGroupMemberDescription] = ()
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    authorized_operations: int = NOT_ASKED


@dataclass(slots=True)
class ConsumerGroupDescribeResponse:
    """In the order of the request."""

    groups: list[ConsumerGroupDescription]
