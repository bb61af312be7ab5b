"""ListGroups (key 16) and DeleteGroups (42): the groups of a broker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from barnabas.protocol.errors import ErrorCode


@dataclass(slots=True)
class ListGroupsRequest:
    """Filters of states and types, case-insensitive; an empty one matches every group."""

    states: Sequence[str] = ()
    types: Sequence[str] = ()


@dataclass(slots=True)
class ListedGroup:
    """`protocol_type`: "consumer", another client's own, or "" for a group that never had a member.

    `state` and `group_type` by Kafka's names: Empty, Stable, ...; Classic, Consumer.
    """

    group_id: str
    protocol_type: str
    state: str
    group_type: str


@dataclass(slots=True)
class ListGroupsResponse:
    """The groups that match, or an error."""

    groups: list[ListedGroup] = field(default_factory=list)
    error: ErrorCode = ErrorCode.NONE


@dataclass(slots=True)
class DeleteGroupsRequest:
    """Group ids."""

    group_ids: Sequence[str]


@dataclass(slots=True)
class DeleteGroupResult:
    """NONE if the group and its offsets are deleted, or the error."""

    group_id: str
    error: ErrorCode = ErrorCode.NONE


@dataclass(slots=True)
class DeleteGroupsResponse:
    """In the order of the request."""

    results: list[DeleteGroupResult]
