"""DeleteRecords (21): delete the records below an offset."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode

HIGH_WATERMARK = -1
"""As an offset: all records that consumers can read."""

NO_LOW_WATERMARK = -1


@dataclass(slots=True)
class DeleteRecordsPartition:
    """`offset`: the first offset to keep, or HIGH_WATERMARK."""

    partition: int
    offset: int


@dataclass(slots=True)
class DeleteRecordsTopic:
    """Partitions of one topic."""

    name: str
    partitions: list[DeleteRecordsPartition]


@dataclass(slots=True)
class DeleteRecordsRequest:
    """`timeout_ms`: how long to wait for other replicas; a single node has none."""

    topics: list[DeleteRecordsTopic]
    timeout_ms: int = 60_000


@dataclass(slots=True)
class DeleteRecordsPartitionResult:
    """`low_watermark`: the new log start offset. The Kafka dialect has no field for `message`."""

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
