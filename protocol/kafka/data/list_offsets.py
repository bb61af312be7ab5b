"""ListOffsets (2), versions 1-11: see the handler of that name.

The special timestamps were added one by one: -3 (maximum timestamp) with version 7, -4 (earliest local) with 8, -5
(latest tiered) with 9, -6 (earliest pending upload) with 11. In an older version they are UNSUPPORTED_VERSION for their
partition, as any other negative timestamp is.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    INT8,
    INT16,
    INT32,
    INT64,
    NO_THROTTLE,
    STRING,
    Array,
    Message,
    Struct,
    rows,
    since,
)
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

_SPECIAL_FROM: Final = {
    LATEST_TIMESTAMP: 1,
    EARLIEST_TIMESTAMP: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP: 11,
}
_NEVER: Final = 1 << 15

_REQUESTED = Struct(ListOffsetsPartition, partition=INT32, current_leader_epoch=since(4, INT32), timestamp=INT64)
REQUEST = Message(
    6,
    partial(ListOffsetsRequest, isolation=READ_UNCOMMITTED),
    _replica_id=INT32,
    isolation=since(2, INT8),
    topics=rows(ListOffsetsTopic, name=STRING, partitions=Array(_REQUESTED)),
    _timeout_ms=since(10, INT32),
)
_RESULT = Struct(partition=INT32, error=INT16, timestamp=INT64, offset=INT64, leader_epoch=since(4, INT32))
RESPONSE = Message(6, throttle_ms=since(2, NO_THROTTLE), topics=rows(name=STRING, partitions=Array(_RESULT)))

encode_response = RESPONSE.write


def decode_request(version: int, body: memoryview) -> ListOffsetsRequest:
    """Raises DecodeError."""
    request: ListOffsetsRequest = REQUEST.read(version, body)
    for topic in request.topics:
        for each in topic.partitions:
            if each.timestamp < 0 and version < _SPECIAL_FROM.get(each.timestamp, _NEVER):
                each.timestamp = UNKNOWN_TIMESTAMP
    return request


def encode_error(version: int, request: ListOffsetsRequest, code: ErrorCode, message: str) -> bytes:
    """The code for every partition."""
    topics = [
        ListOffsetsTopicResult(
            topic.name, [ListOffsetsPartitionResult(each.partition, code) for each in topic.partitions]
        )
        for topic in request.topics
    ]
    return RESPONSE.write(version, ListOffsetsResponse(topics))
