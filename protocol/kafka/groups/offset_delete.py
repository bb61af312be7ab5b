"""OffsetDelete (47), version 0."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.groups.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse, OffsetDeleteTopic

_API: Final = "offset_delete"


def decode_request(version: int, body: memoryview) -> OffsetDeleteRequest:
    """Raises DecodeError."""
    request = entities.read_request(_API, version, body)
    return OffsetDeleteRequest(
        request.group_id,
        [
            OffsetDeleteTopic(topic.name, [each.partition_index for each in topic.partitions])
            for topic in request.topics
        ],
    )


def encode_response(version: int, response: OffsetDeleteResponse) -> bytes:
    """An error of the whole, and a code for each partition."""
    schema = entities.response_schema(_API, version)
    topics = tuple(
        schema.OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=tuple(
                schema.OffsetDeleteResponsePartition(partition_index=each.partition, error_code=each.error)
                for each in topic.partitions
            ),
        )
        for topic in response.topics
    )
    return entities.write(
        schema.OffsetDeleteResponse(error_code=response.error, throttle_time=entities.NO_THROTTLE, topics=topics)
    )


def encode_error(version: int, request: OffsetDeleteRequest, code: ErrorCode, message: str) -> bytes:
    """The code of the whole, and no topics."""
    return encode_response(version, OffsetDeleteResponse(error=code))
