"""ListGroups (key 16) and DeleteGroups (42): the groups of a broker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from barnabas.protocol.errors import ErrorCode


@dataclass(slots=True)
class ListGroupsRequest:
    """Only groups in one of `states` and of one of `types`, in whatever case; empty: any."""

    states: Sequence[str] = ()
    types: Sequence[str] = ()


@dataclass(slots=True)
class ListedGroup:
    """`protocol_type`: "consumer", another client's own, or "" for a group that only ever committed offsets.

    `state` and `group_type` in Kafka's words: Empty, Stable, ...; Classic, Consumer.
    """

    group_id: str
    protocol_type: str
    state: str
    group_type: str


@dataclass(slots=True)
class ListGroupsResponse:
    """All of them, or an error."""

    groups: list[ListedGroup] = field(default_factory=list)
    error: ErrorCode = ErrorCode.NONE


@dataclass(slots=True)
class DeleteGroupsRequest:
    """Groups by their ids."""

    group_ids: Sequence[str]


@dataclass(slots=True)
class DeleteGroupResult:
    """Gone, with all its offsets; or why not."""

    group_id: str
    error: ErrorCode = ErrorCode.NONE


@dataclass(slots=True)
class DeleteGroupsResponse:
    """In the order of the request."""

    results: list[DeleteGroupResult]
