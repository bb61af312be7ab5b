"""OffsetForLeaderEpoch (key 23): the end offset of a leader epoch, by which consumers detect log truncation."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode


@dataclass(slots=True)
class EpochPartition:
    """`leader_epoch`: the requested epoch; `current_leader_epoch`: the one the client knows, -1 for no check."""

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
    """Partitions of several topics."""

    topics: list[EpochTopic]


@dataclass(slots=True)
class EpochPartitionResult:
    """The largest known epoch not above the requested one, and its end offset; -1 when unknown."""

    partition: int
    error: ErrorCode = ErrorCode.NONE
    leader_epoch: int = -1
    end_offset: int = -1


@dataclass(slots=True)
class EpochTopicResult:
    """One topic's results, in the order of the request."""

    name: str
    partitions: list[EpochPartitionResult]


@dataclass(slots=True)
class OffsetForLeaderEpochResponse:
    """Results in the order of the request."""

    topics: list[EpochTopicResult]
