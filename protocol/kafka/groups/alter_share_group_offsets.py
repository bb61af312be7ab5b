"""AlterShareGroupOffsets (91), version 0."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import INT16, INT32, INT64, MESSAGE, NO_THROTTLE, STRING, UUID, Message, rows
from barnabas.protocol.messages.groups.share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    NewOffset,
    TopicToAlter,
)

REQUEST = Message(
    0,
    AlterShareGroupOffsetsRequest,
    group_id=STRING,
    topics=rows(TopicToAlter, topic=STRING, partitions=rows(NewOffset, partition=INT32, start_offset=INT64)),
)
RESPONSE = Message(
    0,
    throttle_ms=NO_THROTTLE,
    error=INT16,
    message=MESSAGE,
    topics=rows(topic=STRING, topic_id=UUID, partitions=rows(partition=INT32, error=INT16, message=MESSAGE)),
)

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: AlterShareGroupOffsetsRequest, code: ErrorCode, message: str) -> bytes:
    """The code for the whole request, and no topics."""
    return RESPONSE.write(version, AlterShareGroupOffsetsResponse(code, message))
