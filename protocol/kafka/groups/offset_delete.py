"""OffsetDelete (47), version 0."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import INT16, INT32, NO_THROTTLE, STRING, Array, Message, Struct, rows
from barnabas.protocol.messages.groups.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse, OffsetDeleteTopic

_PARTITIONS = rows(lambda partition: partition, partition=INT32)
REQUEST = Message(
    1, OffsetDeleteRequest, group_id=STRING, topics=rows(OffsetDeleteTopic, name=STRING, partitions=_PARTITIONS)
)
_RESULT = Struct(partition=INT32, error=INT16)
RESPONSE = Message(1, error=INT16, throttle_ms=NO_THROTTLE, topics=rows(name=STRING, partitions=Array(_RESULT)))

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: OffsetDeleteRequest, code: ErrorCode, message: str) -> bytes:
    """The code for the whole request, and no topics."""
    return RESPONSE.write(version, OffsetDeleteResponse(error=code))
