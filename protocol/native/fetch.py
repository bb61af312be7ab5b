"""fetch (1): stored batches, which follow the answer's header in the order of its arrays.

request   max_wait_ms, min_bytes, max_bytes int, isolation 0 or 1, topics [[name, [[partition, offset, max_bytes]]]]
response  topics [[name, [[partition, error, high_watermark, last_stable_offset, log_start_offset,
                           aborted [[producer_id, first_offset]], size]]]]
"""

from __future__ import annotations

from typing import Any, cast

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages.data.fetch import (
    AbortedTransaction,
    FetchPartitionResult,
    FetchRequest,
    FetchResponse,
    FetchTopicResult,
)
from barnabas.protocol.native.fields import INT32, INT64, array, error_code, field, integer, row, text
from barnabas.protocol.wire.pieces import RecordsPart

_COUNT = (0, INT32[1])


def encode_request(request: FetchRequest) -> dict[str, Any]:
    """The body of a request."""
    return {
        "max_wait_ms": request.max_wait_ms,
        "min_bytes": request.min_bytes,
        "max_bytes": request.max_bytes,
        "isolation": request.isolation,
        "topics": [
            [topic.name, [[p.partition, p.offset, p.max_bytes] for p in topic.partitions]] for topic in request.topics
        ],
    }


def decode_response(body: dict[str, Any], records: memoryview) -> FetchResponse:
    """Decode an answer; the records of a partition are a view of the frame. Raises DecodeError."""
    position = 0
    topics = []
    for topic in array(field(body, "topics"), "topics"):
        name, entries = row(topic, "topics[]", 2)
        partitions = []
        for entry in array(entries, "partitions"):
            result, size = _result(entry)
            if position + size > len(records):
                raise DecodeError(f"the sizes add up to more than the {len(records)} bytes of records in the frame")
            if size:
                result.records = cast(RecordsPart, records[position : position + size])
                position += size
            partitions.append(result)
        topics.append(FetchTopicResult(name=text(name, "name"), partitions=partitions))
    if position != len(records):
        raise DecodeError(f"the sizes add up to {position}, but {len(records)} bytes of records follow the header")
    return FetchResponse(topics=topics)


def _result(entry: Any) -> tuple[FetchPartitionResult, int]:
    partition, error, high_watermark, last_stable_offset, log_start_offset, aborted, size = row(
        entry, "partitions[]", 7
    )
    result = FetchPartitionResult(
        partition=integer(partition, "partition", INT32),
        error=error_code(error, "error"),
        high_watermark=integer(high_watermark, "high_watermark", INT64),
        last_stable_offset=integer(last_stable_offset, "last_stable_offset", INT64),
        log_start_offset=integer(log_start_offset, "log_start_offset", INT64),
        aborted=[_aborted(transaction) for transaction in array(aborted, "aborted")],
    )
    return result, integer(size, "size", _COUNT)


def _aborted(entry: Any) -> AbortedTransaction:
    producer_id, first_offset = row(entry, "aborted[]", 2)
    return AbortedTransaction(
        producer_id=integer(producer_id, "producer_id", INT64),
        first_offset=integer(first_offset, "first_offset", INT64),
    )
