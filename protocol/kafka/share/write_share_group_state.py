"""WriteShareGroupState (85), versions 0 and 1: version 1 adds the count of completed deliveries."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import INT8, INT16, INT32, INT64, MESSAGE, STRING, UUID, Message, rows, since
from barnabas.protocol.messages.share.group_state import (
    GroupStateRequest,
    StateBatchOfApi,
    StateTopic,
    WrittenPartition,
    refused,
)

REQUEST = Message(
    0,
    GroupStateRequest,
    group_id=STRING,
    topics=rows(
        StateTopic,
        topic_id=UUID,
        partitions=rows(
            WrittenPartition,
            partition=INT32,
            state_epoch=INT32,
            leader_epoch=INT32,
            start_offset=INT64,
            delivery_complete_count=since(1, INT32),
            batches=rows(StateBatchOfApi, first_offset=INT64, last_offset=INT64, state=INT8, delivery_count=INT16),
        ),
    ),
)
RESPONSE = Message(0, topics=rows(topic_id=UUID, partitions=rows(partition=INT32, error=INT16, message=MESSAGE)))

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: GroupStateRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every partition."""
    return RESPONSE.write(version, refused(request, code, message))
