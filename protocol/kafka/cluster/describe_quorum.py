"""DescribeQuorum (55), versions 0-2: times from version 1 on; messages, directories and nodes in 2. No observers."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    INT16,
    INT32,
    INT64,
    MESSAGE,
    STRING,
    UINT16,
    UUID,
    Array,
    Computed,
    Constant,
    Message,
    Struct,
    rows,
    since,
)
from barnabas.protocol.messages.cluster.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumTopic,
)

REQUEST = Message(
    0,
    DescribeQuorumRequest,
    topics=rows(DescribeQuorumTopic, name=STRING, partitions=rows(lambda partition: partition, partition=INT32)),
)
_REPLICAS = rows(
    node_id=INT32,
    directory_id=since(2, UUID),
    log_end_offset=INT64,
    last_fetch_timestamp=since(1, INT64),
    last_caught_up_timestamp=since(1, INT64),
)
_PARTITION = Struct(
    partition=INT32,
    error=INT16,
    message=since(2, MESSAGE),
    leader_id=INT32,
    leader_epoch=INT32,
    high_watermark=INT64,
    voters=_REPLICAS,
    observers=Constant(_REPLICAS, ()),
)
_LISTENER = Struct(listener=STRING, host=STRING, port=UINT16)
RESPONSE = Message(
    0,
    error=INT16,
    message=since(2, MESSAGE),
    topics=rows(name=STRING, partitions=Array(_PARTITION)),
    nodes=since(2, rows(node_id=INT32, listeners=Computed(Array(_LISTENER), lambda node: [node]))),
)

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: DescribeQuorumRequest, code: ErrorCode, message: str) -> bytes:
    """The code for the whole request, and no rows."""
    return RESPONSE.write(version, DescribeQuorumResponse([], error=code, message=message))
