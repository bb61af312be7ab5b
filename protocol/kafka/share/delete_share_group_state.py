"""DeleteShareGroupState (86), version 0."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import INT16, INT32, MESSAGE, STRING, UUID, Message, rows
from barnabas.protocol.messages.share.group_state import (
    DeletedPartition,
    GroupStateRequest,
    StateTopic,
    refused,
)

REQUEST = Message(
    0,
    GroupStateRequest,
    group_id=STRING,
    topics=rows(StateTopic, topic_id=UUID, partitions=rows(DeletedPartition, partition=INT32)),
)
RESPONSE = Message(0, topics=rows(topic_id=UUID, partitions=rows(partition=INT32, error=INT16, message=MESSAGE)))

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: GroupStateRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every partition."""
    return RESPONSE.write(version, refused(request, code, message))
