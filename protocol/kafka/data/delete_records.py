"""DeleteRecords (21), versions 0-2. The answer has no room for a message."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.kafka.repetitions import without_repetitions
from barnabas.protocol.messages.data.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)

_API: Final = "delete_records"


def decode_request(version: int, body: memoryview) -> DeleteRecordsRequest:
    """Raises DecodeError."""
    request = entities.read_request(_API, version, body)
    topics = [
        DeleteRecordsTopic(
            topic.name, [DeleteRecordsPartition(each.partition_index, each.offset) for each in topic.partitions]
        )
        for topic in request.topics
    ]
    return DeleteRecordsRequest(without_repetitions(topics), entities.milliseconds(request.timeout))


def encode_response(version: int, response: DeleteRecordsResponse) -> bytes:
    """A row for each partition."""
    schema = entities.response_schema(_API, version)
    topics = tuple(
        schema.DeleteRecordsTopicResult(
            name=topic.name,
            partitions=tuple(
                schema.DeleteRecordsPartitionResult(
                    partition_index=each.partition, low_watermark=each.low_watermark, error_code=each.error
                )
                for each in topic.partitions
            ),
        )
        for topic in response.topics
    )
    return entities.write(schema.DeleteRecordsResponse(throttle_time=entities.NO_THROTTLE, topics=topics))


def encode_error(version: int, request: DeleteRecordsRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every partition."""
    topics = [
        DeleteRecordsTopicResult(
            topic.name, [DeleteRecordsPartitionResult(each.partition, code) for each in topic.partitions]
        )
        for topic in request.topics
    ]
    return encode_response(version, DeleteRecordsResponse(topics))
