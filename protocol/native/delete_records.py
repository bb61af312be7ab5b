"""delete_records (21): delete the records below an offset; -1 is the high watermark.

request   topics [[name, [[partition, offset]]]], timeout_ms
response  topics [[name, [[partition, error, message, low_watermark]]]]
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.messages.data.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)
from barnabas.protocol.native.fields import INT32, INT64, error_code, field, integer, long_text, row, topics_of

DEFAULT_TIMEOUT_MS = 60_000


def encode_request(request: DeleteRecordsRequest) -> dict[str, Any]:
    """The body of a request."""
    return {
        "topics": [
            [topic.name, [[each.partition, each.offset] for each in topic.partitions]] for topic in request.topics
        ],
        "timeout_ms": request.timeout_ms,
    }


def decode_request(body: dict[str, Any]) -> DeleteRecordsRequest:
    """Raises DecodeError, naming the field."""
    topics = topics_of(
        field(body, "topics"), lambda name, partitions: DeleteRecordsTopic(name=name, partitions=partitions), _partition
    )
    timeout_ms = integer(field(body, "timeout_ms", DEFAULT_TIMEOUT_MS), "timeout_ms", INT32)
    return DeleteRecordsRequest(topics=topics, timeout_ms=timeout_ms)


def encode_response(response: DeleteRecordsResponse) -> dict[str, Any]:
    """The body of an answer."""
    return {
        "topics": [
            [
                topic.name,
                [[each.partition, int(each.error), each.message, each.low_watermark] for each in topic.partitions],
            ]
            for topic in response.topics
        ]
    }


def decode_response(body: dict[str, Any]) -> DeleteRecordsResponse:
    """Raises DecodeError, naming the field."""
    return DeleteRecordsResponse(
        topics=topics_of(
            field(body, "topics"),
            lambda name, partitions: DeleteRecordsTopicResult(name=name, partitions=partitions),
            _result,
        )
    )


def _partition(entry: Any) -> DeleteRecordsPartition:
    partition, offset = row(entry, "partitions[]", 2)
    return DeleteRecordsPartition(
        partition=integer(partition, "partition", INT32), offset=integer(offset, "offset", INT64)
    )


def _result(entry: Any) -> DeleteRecordsPartitionResult:
    partition, error, message, low_watermark = row(entry, "partitions[]", 4)
    return DeleteRecordsPartitionResult(
        partition=integer(partition, "partition", INT32),
        error=error_code(error, "error"),
        message=long_text(message, "message"),
        low_watermark=integer(low_watermark, "low_watermark", INT64),
    )
