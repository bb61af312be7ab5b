"""DescribeShareGroupOffsets (key 90), AlterShareGroupOffsets (91) and DeleteShareGroupOffsets (92).

The offset of a share partition is where its group begins: records below it are done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.uuids import ZERO_UUID

NO_OFFSET: Final = -1
"""Start offset and lag of a share partition from which nothing was delivered."""


class NamedPartitions(NamedTuple):
    """Partitions of one topic."""

    topic: str
    partitions: Sequence[int]


class GroupToDescribe(NamedTuple):
    """`topics` None: all partitions with state."""

    group_id: str
    topics: Sequence[NamedPartitions] | None


@dataclass(slots=True)
class DescribeShareGroupOffsetsRequest:
    """Groups."""

    groups: Sequence[GroupToDescribe]


class DescribedOffset(NamedTuple):
    """`lag`: records between the start offset and the end of the partition that are not done."""

    partition: int
    start_offset: int = NO_OFFSET
    leader_epoch: int = 0
    lag: int = NO_OFFSET
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class DescribedTopicOffsets(NamedTuple):
    """The partitions of one topic."""

    topic: str
    partitions: Sequence[DescribedOffset]
    topic_id: bytes = ZERO_UUID


class DescribedGroupOffsets(NamedTuple):
    """The topics of one group, or why there are none."""

    group_id: str
    topics: Sequence[DescribedTopicOffsets] = ()
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(slots=True)
class DescribeShareGroupOffsetsResponse:
    """In the order of the request."""

    groups: Sequence[DescribedGroupOffsets]


class NewOffset(NamedTuple):
    """Where the group is to begin in a partition."""

    partition: int
    start_offset: int


class TopicToAlter(NamedTuple):
    """Partitions of one topic."""

    topic: str
    partitions: Sequence[NewOffset]


@dataclass(slots=True)
class AlterShareGroupOffsetsRequest:
    """One group."""

    group_id: str
    topics: Sequence[TopicToAlter]


class AlteredPartition(NamedTuple):
    """The result for one partition."""

    partition: int
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class AlteredTopic(NamedTuple):
    """The results for one topic."""

    topic: str
    partitions: Sequence[AlteredPartition]
    topic_id: bytes = ZERO_UUID


@dataclass(slots=True)
class AlterShareGroupOffsetsResponse:
    """The error of the whole request, or the results."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    topics: Sequence[AlteredTopic] = ()


@dataclass(slots=True)
class DeleteShareGroupOffsetsRequest:
    """One group, and the topics whose offsets are deleted."""

    group_id: str
    topics: Sequence[str]


class DeletedTopicOffsets(NamedTuple):
    """The result for one topic."""

    topic: str
    topic_id: bytes = ZERO_UUID
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(slots=True)
class DeleteShareGroupOffsetsResponse:
    """The error of the whole request, or the results."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    topics: Sequence[DeletedTopicOffsets] = field(default_factory=list)
