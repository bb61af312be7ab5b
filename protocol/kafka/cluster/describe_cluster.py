"""DescribeCluster (60), versions 0-2: from version 1 on for brokers or controllers, version 2 has fenced brokers."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    BOOL,
    INT8,
    INT16,
    INT32,
    MESSAGE,
    NO_THROTTLE,
    NULLABLE_STRING,
    STRING,
    Array,
    Constant,
    Message,
    Struct,
    since,
)
from barnabas.protocol.messages.cluster.describe_cluster import (
    BROKER_ENDPOINT,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

REQUEST = Message(
    0,
    DescribeClusterRequest,
    include_authorized_operations=BOOL,
    endpoint_type=since(1, INT8),
    _include_fenced_brokers=since(2, BOOL),
)
_BROKER = Struct(
    node_id=INT32,
    host=STRING,
    port=INT32,
    rack=Constant(NULLABLE_STRING, None),
    is_fenced=since(2, Constant(BOOL, False)),
)
RESPONSE = Message(
    0,
    throttle_ms=NO_THROTTLE,
    error=INT16,
    message=MESSAGE,
    endpoint_type=since(1, Constant(INT8, BROKER_ENDPOINT)),
    cluster_id=STRING,
    controller_id=INT32,
    brokers=Array(_BROKER),
    authorized_operations=INT32,
)

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: Any, code: ErrorCode, message: str) -> bytes:
    """A refusal."""
    return RESPONSE.write(version, DescribeClusterResponse("", -1, [], error=code, message=message))
