"""ListOffsets (key 2): the offset that belongs to a timestamp, or to one of the special ones below."""

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
"""What a dialect says for one that the client's version does not have."""


@dataclass(slots=True)
class ListOffsetsPartition:
    """`timestamp`: the first record at or after it is looked for, or one of the special ones above.

    `current_leader_epoch`: the one that the client believes in, -1 for whatever it is.
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
    """`offset` and `timestamp` are -1 where no record is that late; `timestamp` is -1 for latest and earliest."""

    partition: int
    error: ErrorCode = ErrorCode.NONE
    offset: int = -1
    timestamp: int = -1
    leader_epoch: int = -1


@dataclass(slots=True)
class ListOffsetsTopicResult:
    """One topic's answers, in the order of the request."""

    name: str
    partitions: list[ListOffsetsPartitionResult]


@dataclass(slots=True)
class ListOffsetsResponse:
    """The answers of all partitions, in the order of the request."""

    topics: list[ListOffsetsTopicResult]
