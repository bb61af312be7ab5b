"""OffsetForLeaderEpoch (key 23): where a leader epoch ended, by which a consumer notices that its log was cut."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode


@dataclass(slots=True)
class EpochPartition:
    """`leader_epoch` is asked about; `current_leader_epoch`: the one it believes in, -1 for whatever it is."""

    partition: int
    leader_epoch: int
    current_leader_epoch: int = -1


@dataclass(slots=True)
class EpochTopic:
    """One topic's partitions."""

    name: str
    partitions: list[EpochPartition]


@dataclass(slots=True)
class OffsetForLeaderEpochRequest:
    """Any number of partitions."""

    topics: list[EpochTopic]


@dataclass(slots=True)
class EpochPartitionResult:
    """The greatest known epoch not above the one asked about, and the offset at which it ended; -1 where unknown."""

    partition: int
    error: ErrorCode = ErrorCode.NONE
    leader_epoch: int = -1
    end_offset: int = -1


@dataclass(slots=True)
class EpochTopicResult:
    """One topic's answers, in the order of the request."""

    name: str
    partitions: list[EpochPartitionResult]


@dataclass(slots=True)
class OffsetForLeaderEpochResponse:
    """The answers of all partitions, in the order of the request."""

    topics: list[EpochTopicResult]
