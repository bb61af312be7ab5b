"""OffsetForLeaderEpoch (23), versions 2-4: see the handler of that name."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import INT16, INT32, INT64, NO_THROTTLE, STRING, Array, Message, Struct, rows, since
from barnabas.protocol.messages.data.offset_for_leader_epoch import (
    EpochPartition,
    EpochPartitionResult,
    EpochTopic,
    EpochTopicResult,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)

_REQUESTED = Struct(EpochPartition, partition=INT32, current_leader_epoch=INT32, leader_epoch=INT32)
REQUEST = Message(
    4,
    OffsetForLeaderEpochRequest,
    _replica_id=since(3, INT32),
    topics=rows(EpochTopic, name=STRING, partitions=Array(_REQUESTED)),
)
_RESULT = Struct(error=INT16, partition=INT32, leader_epoch=INT32, end_offset=INT64)
RESPONSE = Message(4, throttle_ms=NO_THROTTLE, topics=rows(name=STRING, partitions=Array(_RESULT)))

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: OffsetForLeaderEpochRequest, code: ErrorCode, message: str) -> bytes:
    """The code for every partition."""
    topics = [
        EpochTopicResult(topic.name, [EpochPartitionResult(each.partition, code) for each in topic.partitions])
        for topic in request.topics
    ]
    return RESPONSE.write(version, OffsetForLeaderEpochResponse(topics))
