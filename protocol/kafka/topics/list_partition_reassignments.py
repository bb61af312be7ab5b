"""ListPartitionReassignments (46), version 0. The answer never has a row: see the handler of that name."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    INT16,
    INT32,
    MESSAGE,
    NO_THROTTLE,
    STRING,
    Array,
    Constant,
    Message,
    Struct,
    rows,
)
from barnabas.protocol.messages.topics.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

_REQUESTED = Struct(tuple, _name=STRING, _partitions=Array(INT32))
REQUEST = Message(0, ListPartitionReassignmentsRequest, _timeout_ms=INT32, _topics=Array(_REQUESTED, nullable_from=0))
_NODES = Array(INT32)
_PARTITION = Struct(partition=INT32, replicas=_NODES, adding=_NODES, removing=_NODES)
RESPONSE = Message(
    0,
    throttle_ms=NO_THROTTLE,
    error=INT16,
    message=MESSAGE,
    topics=Constant(rows(name=STRING, partitions=Array(_PARTITION)), ()),
)

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: ListPartitionReassignmentsRequest, code: ErrorCode, message: str) -> bytes:
    """A refusal."""
    return RESPONSE.write(version, ListPartitionReassignmentsResponse(code, message))
