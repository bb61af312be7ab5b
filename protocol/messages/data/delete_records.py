"""DeleteRecords (21): partitions lose what lies below an offset."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode

HIGH_WATERMARK = -1
"""As an offset: everything that consumers can see."""

NO_LOW_WATERMARK = -1


@dataclass(slots=True)
class DeleteRecordsPartition:
    """`offset`: the first one that stays, or HIGH_WATERMARK."""

    partition: int
    offset: int


@dataclass(slots=True)
class DeleteRecordsTopic:
    """Partitions of one topic."""

    name: str
    partitions: list[DeleteRecordsPartition]


@dataclass(slots=True)
class DeleteRecordsRequest:
    """`timeout_ms`: how long other replicas may take; a single node has none to wait for."""

    topics: list[DeleteRecordsTopic]
    timeout_ms: int = 60_000


@dataclass(slots=True)
class DeleteRecordsPartitionResult:
    """`low_watermark`: the log start offset now. The Kafka dialect has no room for `message`."""

    partition: int
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    low_watermark: int = NO_LOW_WATERMARK


@dataclass(slots=True)
class DeleteRecordsTopicResult:
    """Results of one topic."""

    name: str
    partitions: list[DeleteRecordsPartitionResult]


@dataclass(slots=True)
class DeleteRecordsResponse:
    """In the order of the request."""

    topics: list[DeleteRecordsTopicResult]
