"""DeleteShareGroupOffsets (92), version 0."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import INT16, MESSAGE, NO_THROTTLE, STRING, UUID, Message, rows
from barnabas.protocol.messages.groups.share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)

REQUEST = Message(0, DeleteShareGroupOffsetsRequest, group_id=STRING, topics=rows(lambda topic: topic, topic=STRING))
RESPONSE = Message(
    0,
    throttle_ms=NO_THROTTLE,
    error=INT16,
    message=MESSAGE,
    topics=rows(topic=STRING, topic_id=UUID, error=INT16, message=MESSAGE),
)

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: DeleteShareGroupOffsetsRequest, code: ErrorCode, message: str) -> bytes:
    """The code for the whole request, and no topics."""
    return RESPONSE.write(version, DeleteShareGroupOffsetsResponse(code, message))
