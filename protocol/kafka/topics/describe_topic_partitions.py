"""DescribeTopicPartitions (75), version 0. Its answer has no field for an error as a whole: every topic carries it."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    BOOL,
    INT16,
    INT32,
    NO_THROTTLE,
    NULLABLE_STRING,
    STRING,
    UUID,
    Array,
    Constant,
    Message,
    Nullable,
    Struct,
    rows,
)
from barnabas.protocol.messages.topics.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from barnabas.protocol.messages.topics.metadata import TopicMetadata

_CURSOR = Nullable(Struct(Cursor, topic=STRING, partition=INT32))
REQUEST = Message(
    0,
    DescribeTopicPartitionsRequest,
    topics=rows(lambda name: name, name=STRING),
    partition_limit=INT32,
    cursor=_CURSOR,
)
_NODES = Array(INT32)
_NO_NODES = Constant(Array(INT32, nullable_from=0), ())
_PARTITION = Struct(
    error=INT16,
    partition=INT32,
    leader=INT32,
    leader_epoch=INT32,
    replicas=_NODES,
    isr=_NODES,
    eligible_leader_replicas=_NO_NODES,
    last_known_eligible_leader_replicas=_NO_NODES,
    offline=_NODES,
)
_TOPIC = Struct(
    error=INT16,
    name=NULLABLE_STRING,
    topic_id=UUID,
    is_internal=BOOL,
    partitions=Array(_PARTITION),
    authorized_operations=INT32,
)
RESPONSE = Message(0, throttle_ms=NO_THROTTLE, topics=Array(_TOPIC), next_cursor=_CURSOR)

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: DescribeTopicPartitionsRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every topic."""
    topics = [TopicMetadata(name=name, error=code) for name in request.topics]
    return RESPONSE.write(version, DescribeTopicPartitionsResponse(topics))
