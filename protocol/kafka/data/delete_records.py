"""DeleteRecords (21), versions 0-2. The answer has no field for a message."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.repetitions import without_repetitions
from barnabas.protocol.kafka.schema import INT16, INT32, INT64, NO_THROTTLE, STRING, Array, Message, Struct, rows
from barnabas.protocol.messages.data.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)

_REQUESTED = Struct(DeleteRecordsPartition, partition=INT32, offset=INT64)
REQUEST = Message(
    2,
    DeleteRecordsRequest,
    topics=Array(Struct(DeleteRecordsTopic, name=STRING, partitions=Array(_REQUESTED)), make=without_repetitions),
    timeout_ms=INT32,
)
_RESULT = Struct(partition=INT32, low_watermark=INT64, error=INT16)
RESPONSE = Message(2, throttle_ms=NO_THROTTLE, topics=rows(name=STRING, partitions=Array(_RESULT)))

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: DeleteRecordsRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every partition."""
    topics = [
        DeleteRecordsTopicResult(
            topic.name, [DeleteRecordsPartitionResult(each.partition, code) for each in topic.partitions]
        )
        for topic in request.topics
    ]
    return RESPONSE.write(version, DeleteRecordsResponse(topics))
