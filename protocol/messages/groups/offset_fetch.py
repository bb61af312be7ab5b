"""OffsetFetch (key 9): the committed offsets of groups, in given partitions or in all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode

NO_OFFSET = -1

NO_MEMBER_EPOCH = -1
"""Sent by clients that are not members, or members of a classic group."""


@dataclass(slots=True)
class OffsetFetchTopic:
    """One topic by name, or by `topic_id` if that is not None; then the name is empty."""

    name: str
    partitions: Sequence[int]
    topic_id: bytes | None = None


@dataclass(slots=True)
class OffsetFetchGroup:
    """`topics` None: all committed offsets. A member of the consumer protocol gives its id and epoch."""

    group_id: str
    topics: list[OffsetFetchTopic] | None
    member_id: str | None = None
    member_epoch: int = NO_MEMBER_EPOCH


@dataclass(slots=True)
class OffsetFetchRequest:
    """`require_stable`: refuse offsets that an open transaction may change.

    `by_id`: the response names topics by id, also if all are requested.
    """

    groups: list[OffsetFetchGroup]
    require_stable: bool = False
    by_id: bool = False


@dataclass(slots=True)
class OffsetFetchPartitionResult:
    """`offset` is -1 if none is committed."""

    partition: int
    error: ErrorCode = ErrorCode.NONE
    offset: int = NO_OFFSET
    leader_epoch: int = -1
    metadata: str = ""


@dataclass(slots=True)
class OffsetFetchTopicResult:
    """One topic's offsets."""

    name: str
    partitions: list[OffsetFetchPartitionResult]
    topic_id: bytes | None = None


@dataclass(slots=True)
class OffsetFetchGroupResult:
    """One group's offsets, or an error."""

    group_id: str
    topics: list[OffsetFetchTopicResult]
    error: ErrorCode = ErrorCode.NONE


@dataclass(slots=True)
class OffsetFetchResponse:
    """In the order of the request."""

    groups: list[OffsetFetchGroupResult]


def refuse_fetch(group: OffsetFetchGroup, error: ErrorCode) -> OffsetFetchGroupResult:
    """Return a result with the error for the group and, for old versions without that, for each partition."""
    topics = [
        OffsetFetchTopicResult(
            topic.name, [OffsetFetchPartitionResult(each, error) for each in topic.partitions], topic.topic_id
        )
        for topic in group.topics or ()
    ]
    return OffsetFetchGroupResult(group.group_id, topics, error)
