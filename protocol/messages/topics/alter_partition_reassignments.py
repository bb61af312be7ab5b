"""AlterPartitionReassignments (key 45): put partitions on other nodes, or cancel that."""

from __future__ import annotations

from dataclasses import dataclass, field

from barnabas.protocol.errors import ErrorCode


@dataclass(slots=True)
class ReassignedPartition:
    """The replicas that one partition shall have; None: cancel its reassignment."""

    partition: int
    replicas: tuple[int, ...] | None


@dataclass(slots=True)
class ReassignedTopic:
    """Partitions of one topic."""

    name: str
    partitions: list[ReassignedPartition]


@dataclass(slots=True)
class AlterPartitionReassignmentsRequest:
    """`allows_other_factor`: whether a partition may get more or fewer replicas than it has."""

    topics: list[ReassignedTopic]
    allows_other_factor: bool = True


@dataclass(slots=True)
class ReassignedPartitionResult:
    """One partition's result."""

    partition: int
    error: ErrorCode
    message: str | None = None


@dataclass(slots=True)
class ReassignedTopicResult:
    """Results of one topic."""

    name: str
    partitions: list[ReassignedPartitionResult] = field(default_factory=list)


@dataclass(slots=True)
class AlterPartitionReassignmentsResponse:
    """In the order of the request; `error` is that of the whole request, and `allows_other_factor` is repeated."""

    topics: list[ReassignedTopicResult]
    allows_other_factor: bool = True
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
