"""OffsetFetch (key 9): where groups are, in partitions that are named or in all that they have committed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode

NO_OFFSET = -1

NO_MEMBER_EPOCH = -1
"""Of who is no member, or one of a classic group."""


@dataclass(slots=True)
class OffsetFetchTopic:
    """One topic by its name, or by `topic_id` where that is not None; then the name is empty."""

    name: str
    partitions: Sequence[int]
    topic_id: bytes | None = None


@dataclass(slots=True)
class OffsetFetchGroup:
    """`topics` None: all that the group has committed. A member of the newer protocol names itself and its epoch."""

    group_id: str
    topics: list[OffsetFetchTopic] | None
    member_id: str | None = None
    member_epoch: int = NO_MEMBER_EPOCH


@dataclass(slots=True)
class OffsetFetchRequest:
    """`require_stable`: refuse offsets that an open transaction may change.

    `by_id`: topics are answered by their ids, also where all are asked for.
    """

    groups: list[OffsetFetchGroup]
    require_stable: bool = False
    by_id: bool = False


@dataclass(slots=True)
class OffsetFetchPartitionResult:
    """`offset` is -1 where nothing is committed."""

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
    """One group's offsets, or why there are none to be had."""

    group_id: str
    topics: list[OffsetFetchTopicResult]
    error: ErrorCode = ErrorCode.NONE


@dataclass(slots=True)
class OffsetFetchResponse:
    """In the order of the request."""

    groups: list[OffsetFetchGroupResult]


def refuse_fetch(group: OffsetFetchGroup, error: ErrorCode) -> OffsetFetchGroupResult:
    """The error for the group and, as old versions have no place for that, for every partition that it names."""
    topics = [
        OffsetFetchTopicResult(
            topic.name, [OffsetFetchPartitionResult(each, error) for each in topic.partitions], topic.topic_id
        )
        for topic in group.topics or ()
    ]
    return OffsetFetchGroupResult(group.group_id, topics, error)
