"""ListOffsets (2), versions 1-11: see the handler of that name.

The special timestamps came one after the other: -3 (maximum timestamp) with version 7, -4 (earliest local) with 8, -5
(latest tiered) with 9, -6 (earliest pending upload) with 11. In an older version they are UNSUPPORTED_VERSION for their
partition, as any other negative timestamp is.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.data.fetch import READ_UNCOMMITTED
from barnabas.protocol.messages.data.list_offsets import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    UNKNOWN_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsPartitionResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResult,
)

_API: Final = "list_offsets"

_SPECIAL_FROM: Final = {
    LATEST_TIMESTAMP: 1,
    EARLIEST_TIMESTAMP: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP: 11,
}
_NEVER: Final = 1 << 15


def decode_request(version: int, body: memoryview) -> ListOffsetsRequest:
    """Raises DecodeError."""
    request = entities.read_request(_API, version, body)
    return ListOffsetsRequest(
        getattr(request, "isolation_level", READ_UNCOMMITTED),
        [
            ListOffsetsTopic(topic.name, [_partition(version, each) for each in topic.partitions])
            for topic in request.topics
        ],
    )


def _partition(version: int, entry: Any) -> ListOffsetsPartition:
    timestamp = entry.timestamp
    if timestamp < 0 and version < _SPECIAL_FROM.get(timestamp, _NEVER):
        timestamp = UNKNOWN_TIMESTAMP
    return ListOffsetsPartition(entry.partition_index, timestamp, getattr(entry, "current_leader_epoch", -1))


def encode_response(version: int, response: ListOffsetsResponse) -> bytes:
    """The body of an answer."""
    schema = entities.response_schema(_API, version)
    topics = tuple(
        schema.ListOffsetsTopicResponse(
            name=topic.name, partitions=tuple(_result(schema, each) for each in topic.partitions)
        )
        for topic in response.topics
    )
    return entities.write(entities.make(schema.ListOffsetsResponse, throttle_time=entities.NO_THROTTLE, topics=topics))


def encode_error(version: int, request: ListOffsetsRequest, code: ErrorCode, message: str) -> bytes:
    """The code for every partition."""
    return encode_response(
        version,
        ListOffsetsResponse(
            [
                ListOffsetsTopicResult(
                    topic.name, [ListOffsetsPartitionResult(each.partition, code) for each in topic.partitions]
                )
                for topic in request.topics
            ]
        ),
    )


def _result(schema: Any, result: ListOffsetsPartitionResult) -> Any:
    return entities.make(
        schema.ListOffsetsPartitionResponse,
        partition_index=result.partition,
        error_code=result.error,
        timestamp=result.timestamp,
        offset=result.offset,
        leader_epoch=result.leader_epoch,
    )
