"""OffsetDelete (key 47): delete a group's committed offsets in some partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from barnabas.protocol.errors import ErrorCode


@dataclass(slots=True)
class OffsetDeleteTopic:
    """Partitions of one topic."""

    name: str
    partitions: Sequence[int]


@dataclass(slots=True)
class OffsetDeleteRequest:
    """One group."""

    group_id: str
    topics: list[OffsetDeleteTopic]


@dataclass(slots=True)
class OffsetDeletePartitionResult:
    """NONE even if there was no offset, or the error."""

    partition: int
    error: ErrorCode = ErrorCode.NONE


@dataclass(slots=True)
class OffsetDeleteTopicResult:
    """One topic's results."""

    name: str
    partitions: list[OffsetDeletePartitionResult]


@dataclass(slots=True)
class OffsetDeleteResponse:
    """In the order of the request; `error` is that of the request as a whole."""

    topics: list[OffsetDeleteTopicResult] = field(default_factory=list)
    error: ErrorCode = ErrorCode.NONE
