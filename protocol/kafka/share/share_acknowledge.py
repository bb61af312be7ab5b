"""ShareAcknowledge (79), versions 1 and 2: version 2 adds RENEW and the time of locks (KIP-1222)."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    BOOL,
    INT8,
    INT16,
    INT32,
    INT64,
    MESSAGE,
    NO_THROTTLE,
    NULLABLE_STRING,
    STRING,
    UUID,
    Array,
    Computed,
    Constant,
    Message,
    Struct,
    rows,
    since,
)
from barnabas.protocol.messages.share.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)

_RENEW_FROM = 2

ACKNOWLEDGE_TOPICS = rows(
    AcknowledgeTopic,
    topic_id=UUID,
    partitions=rows(
        AcknowledgePartition,
        partition=INT32,
        batches=rows(AcknowledgementBatch, first_offset=INT64, last_offset=INT64, types=Array(INT8)),
    ),
)
LEADER = Struct(
    node_id=Computed(INT32, lambda leader: leader[0]), leader_epoch=Computed(INT32, lambda leader: leader[1])
)
NODES = rows(node_id=INT32, host=STRING, port=INT32, rack=NULLABLE_STRING)
"""Addresses of other leaders: a single node has none."""

REQUEST = Message(
    0,
    ShareAcknowledgeRequest,
    group_id=NULLABLE_STRING,
    member_id=NULLABLE_STRING,
    session_epoch=INT32,
    is_renewal=since(_RENEW_FROM, BOOL),
    topics=ACKNOWLEDGE_TOPICS,
)
RESPONSE = Message(
    0,
    throttle_ms=NO_THROTTLE,
    error=INT16,
    message=MESSAGE,
    lock_timeout_ms=since(_RENEW_FROM, INT32),
    topics=rows(
        topic_id=UUID,
        partitions=rows(partition=INT32, error=INT16, message=MESSAGE, leader=LEADER),
    ),
    nodes=Constant(NODES, ()),
)

encode_response = RESPONSE.write


def decode_request(version: int, body: memoryview) -> ShareAcknowledgeRequest:
    """Raises DecodeError."""
    request: ShareAcknowledgeRequest = REQUEST.read(version, body)
    request.may_renew = version >= _RENEW_FROM
    return request


def encode_error(version: int, request: ShareAcknowledgeRequest, code: ErrorCode, message: str) -> bytes:
    """The code for the whole."""
    return RESPONSE.write(version, ShareAcknowledgeResponse([], code, message))
