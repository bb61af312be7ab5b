"""AlterPartitionReassignments (45), versions 0-1. Version 1 can forbid another replication factor (KIP-860)."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    BOOL,
    INT16,
    INT32,
    MESSAGE,
    NO_THROTTLE,
    STRING,
    Array,
    Message,
    Struct,
    rows,
    since,
)
from barnabas.protocol.messages.topics.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignedPartition,
    ReassignedPartitionResult,
    ReassignedTopic,
    ReassignedTopicResult,
)

_PARTITION = Struct(ReassignedPartition, partition=INT32, replicas=Array(INT32, nullable_from=0))
REQUEST = Message(
    0,
    AlterPartitionReassignmentsRequest,
    _timeout_ms=INT32,
    allows_other_factor=since(1, BOOL),
    topics=Array(Struct(ReassignedTopic, name=STRING, partitions=Array(_PARTITION))),
)
_RESULT = Struct(partition=INT32, error=INT16, message=MESSAGE)
RESPONSE = Message(
    0,
    throttle_ms=NO_THROTTLE,
    allows_other_factor=since(1, BOOL),
    error=INT16,
    message=MESSAGE,
    topics=rows(name=STRING, partitions=Array(_RESULT)),
)

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: AlterPartitionReassignmentsRequest, code: ErrorCode, message: str) -> bytes:
    """The code for the whole request, and for every partition that it names."""
    topics = [
        ReassignedTopicResult(
            topic.name, [ReassignedPartitionResult(each.partition, code, message) for each in topic.partitions]
        )
        for topic in request.topics
    ]
    refused = AlterPartitionReassignmentsResponse(topics, request.allows_other_factor, code, message)
    return RESPONSE.write(version, refused)
