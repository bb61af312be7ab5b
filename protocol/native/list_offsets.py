"""list_offsets (2): the offset of a timestamp; -1 latest, -2 earliest, -3 the maximum timestamp.

request   isolation 0 or 1, topics [[name, [[partition, timestamp]]]]
response  topics [[name, [[partition, error, offset, timestamp, leader_epoch]]]]
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.messages.data.list_offsets import (
    ListOffsetsPartitionResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResult,
)
from barnabas.protocol.native.fields import INT32, INT64, error_code, field, integer, row, topics_of


def encode_request(request: ListOffsetsRequest) -> dict[str, Any]:
    """The body of a request."""
    return {
        "isolation": request.isolation,
        "topics": [[topic.name, [[p.partition, p.timestamp] for p in topic.partitions]] for topic in request.topics],
    }


def decode_response(body: dict[str, Any]) -> ListOffsetsResponse:
    """Raises DecodeError, naming the field."""
    topics = topics_of(
        field(body, "topics"),
        lambda name, partitions: ListOffsetsTopicResult(name=name, partitions=partitions),
        _result,
    )
    return ListOffsetsResponse(topics=topics)


def _result(entry: Any) -> ListOffsetsPartitionResult:
    partition, error, offset, timestamp, leader_epoch = row(entry, "partitions[]", 5)
    return ListOffsetsPartitionResult(
        partition=integer(partition, "partition", INT32),
        error=error_code(error, "error"),
        offset=integer(offset, "offset", INT64),
        timestamp=integer(timestamp, "timestamp", INT64),
        leader_epoch=integer(leader_epoch, "leader_epoch", INT32),
    )
