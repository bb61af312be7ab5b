"""ElectLeaders (key 43): elect the first replica of partitions as leader, or (unclean) any live one."""

from __future__ import annotations

from dataclasses import dataclass, field

from barnabas.protocol.errors import ErrorCode

PREFERRED = 0
UNCLEAN = 1


@dataclass(slots=True)
class ElectLeadersTopic:
    """Partitions of one topic."""

    name: str
    partitions: list[int]


@dataclass(slots=True)
class ElectLeadersRequest:
    """`topics` None: all partitions."""

    election_type: int
    topics: list[ElectLeadersTopic] | None


@dataclass(slots=True)
class ElectLeadersPartitionResult:
    """One partition's result."""

    partition: int
    error: ErrorCode
    message: str | None = None


@dataclass(slots=True)
class ElectLeadersTopicResult:
    """Results of one topic."""

    name: str
    partitions: list[ElectLeadersPartitionResult] = field(default_factory=list)


@dataclass(slots=True)
class ElectLeadersResponse:
    """In the order of the request; `error` is that of the whole request."""

    topics: list[ElectLeadersTopicResult]
    error: ErrorCode = ErrorCode.NONE
