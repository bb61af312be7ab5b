"""DeleteRecords (21): delete the records below an offset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.fields import unwired
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Error, Int32, Int64, String

HIGH_WATERMARK: Final = -1
"""As an offset: all records that consumers can read."""

NO_LOW_WATERMARK: Final = -1


class DeleteRecordsPartitionResult(Struct):
    """`low_watermark`: the new log start offset. Kafka's protocol has no field for `message`."""

    partition: Int32
    low_watermark: Int64 = NO_LOW_WATERMARK
    error: Error = ErrorCode.NONE
    message: str | None = unwired(default=None)


class DeleteRecordsTopicResult(Struct):
    """Results of one topic."""

    name: String
    partitions: Sequence[DeleteRecordsPartitionResult]


class DeleteRecordsResponse(Struct, flexible=2):
    """In the order of the request."""

    throttle_ms: Int32 = 0
    topics: Sequence[DeleteRecordsTopicResult]


class DeleteRecordsPartition(Struct):
    """`offset`: the first offset to keep, or HIGH_WATERMARK."""

    partition: Int32
    offset: Int64


class DeleteRecordsTopic(Struct):
    """Partitions of one topic."""

    name: String
    partitions: Sequence[DeleteRecordsPartition]


class DeleteRecordsRequest(Request[DeleteRecordsResponse], api=ApiKey.DELETE_RECORDS, flexible=2):
    """`timeout_ms`: how long to wait for other replicas; a single node has none."""

    topics: Sequence[DeleteRecordsTopic]
    timeout_ms: Int32 = 60_000

    def offsets(self) -> dict[str, dict[int, int]]:
        """Return the offset of each partition of each topic.

        Of several entries of a partition the last counts, at the position of the first, and a topic without partitions
        is dropped, as in Kafka's KafkaApis.handleDeleteRecordsRequest.
        """
        found: dict[str, dict[int, int]] = {}
        for topic in self.topics:
            if topic.partitions:
                found.setdefault(topic.name, {}).update((each.partition, each.offset) for each in topic.partitions)
        return found

    def refused(self, code: ErrorCode, message: str) -> DeleteRecordsResponse:
        """The same refusal for every partition."""
        return DeleteRecordsResponse(
            topics=[
                DeleteRecordsTopicResult(
                    name=name,
                    partitions=[DeleteRecordsPartitionResult(partition=each, error=code) for each in partitions],
                )
                for name, partitions in self.offsets().items()
            ]
        )
