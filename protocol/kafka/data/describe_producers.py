"""DescribeProducers (61), version 0."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    INT16,
    INT32,
    INT64,
    MESSAGE,
    NO_THROTTLE,
    STRING,
    Array,
    Message,
    Struct,
    rows,
)
from barnabas.protocol.messages.data.describe_producers import (
    DescribeProducersPartitionResult,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopic,
    DescribeProducersTopicResult,
)

_REQUESTED = Struct(DescribeProducersTopic, name=STRING, partitions=Array(INT32, make=tuple))
REQUEST = Message(0, DescribeProducersRequest, topics=Array(_REQUESTED))

_PRODUCER = Struct(
    producer_id=INT64,
    epoch=INT32,
    last_sequence=INT32,
    last_timestamp=INT64,
    coordinator_epoch=INT32,
    transaction_start_offset=INT64,
)
_PARTITION = Struct(partition=INT32, error=INT16, message=MESSAGE, producers=Array(_PRODUCER))
RESPONSE = Message(0, throttle_ms=NO_THROTTLE, topics=rows(name=STRING, partitions=Array(_PARTITION)))

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: DescribeProducersRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every partition."""
    topics = [
        DescribeProducersTopicResult(
            topic.name,
            [DescribeProducersPartitionResult(partition, code, message) for partition in topic.partitions],
        )
        for topic in request.topics
    ]
    return RESPONSE.write(version, DescribeProducersResponse(topics))
