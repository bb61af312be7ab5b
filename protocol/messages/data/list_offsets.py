"""ListOffsets (key 2): the offset of a timestamp, or of one of the special timestamps below."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL_TIMESTAMP = -4
LATEST_TIERED_TIMESTAMP = -5
EARLIEST_PENDING_UPLOAD_TIMESTAMP = -6

UNKNOWN_TIMESTAMP = -(2**63)
"""A dialect's value for a special timestamp that the client's version does not have."""


@dataclass(slots=True)
class ListOffsetsPartition:
    """`timestamp`: find the first record at or after it, or one of the special timestamps above.

    `current_leader_epoch`: the leader epoch that the client knows, -1 for no check.
    """

    partition: int
    timestamp: int
    current_leader_epoch: int = -1


@dataclass(slots=True)
class ListOffsetsTopic:
    """One topic's partitions."""

    name: str
    partitions: list[ListOffsetsPartition]


@dataclass(slots=True)
class ListOffsetsRequest:
    """`isolation`: 0 answers `latest` with the high watermark, 1 with the last stable offset."""

    isolation: int
    topics: list[ListOffsetsTopic]


@dataclass(slots=True)
class ListOffsetsPartitionResult:
    """`offset` and `timestamp` are -1 when no record is that late; `timestamp` is -1 for latest and earliest."""

    partition: int
    error: ErrorCode = ErrorCode.NONE
    offset: int = -1
    timestamp: int = -1
    leader_epoch: int = -1


@dataclass(slots=True)
class ListOffsetsTopicResult:
    """One topic's results, in the order of the request."""

    name: str
    partitions: list[ListOffsetsPartitionResult]


@dataclass(slots=True)
class ListOffsetsResponse:
    """Results in the order of the request."""

    topics: list[ListOffsetsTopicResult]
