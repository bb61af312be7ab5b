"""DescribeQuorum (key 55): the voters of a Raft log, its leader, and each voter's progress."""

from __future__ import annotations

from dataclasses import dataclass, field

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.uuids import ZERO_UUID


@dataclass(slots=True)
class DescribeQuorumTopic:
    """Partitions of one topic."""

    name: str
    partitions: list[int]


@dataclass(slots=True)
class DescribeQuorumRequest:
    """The logs to describe."""

    topics: list[DescribeQuorumTopic]


@dataclass(slots=True)
class QuorumReplica:
    """A voter. Times in ms, by the leader's clock; an unknown directory has a zero id."""

    node_id: int
    log_end_offset: int
    last_fetch_timestamp: int
    last_caught_up_timestamp: int
    directory_id: bytes = ZERO_UUID


@dataclass(slots=True)
class DescribeQuorumPartitionResult:
    """One log. With an error the numbers are 0, as in Kafka."""

    partition: int
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    leader_id: int = 0
    leader_epoch: int = 0
    high_watermark: int = 0
    voters: list[QuorumReplica] = field(default_factory=list)


@dataclass(slots=True)
class DescribeQuorumTopicResult:
    """Results of one topic."""

    name: str
    partitions: list[DescribeQuorumPartitionResult]


@dataclass(slots=True)
class QuorumNode:
    """A voter's one listener."""

    node_id: int
    listener: str
    host: str
    port: int


@dataclass(slots=True)
class DescribeQuorumResponse:
    """In the order of the request; `nodes` are those of the voters."""

    topics: list[DescribeQuorumTopicResult]
    nodes: list[QuorumNode] = field(default_factory=list)
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
