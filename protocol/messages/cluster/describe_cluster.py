"""DescribeCluster (key 60): the cluster's id, its brokers and its controller."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.authorized_operations import NOT_ASKED
from barnabas.protocol.wire.fields import since
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Bool, Error, Int8, Int32, Message, NullableString, String

BROKER_ENDPOINT = 1
CONTROLLER_ENDPOINT = 2


class DescribeClusterBroker(Struct):
    """A broker's address on the client's listener."""

    node_id: Int32
    host: String
    port: Int32
    rack: NullableString = None
    is_fenced: Bool = since(2, default=False)


class DescribeClusterResponse(Struct, flexible=0):
    """`cluster_id` is the text of an id; `controller_id` one of the brokers'."""

    throttle_ms: Int32 = 0
    error: Error = ErrorCode.NONE
    message: Message = None
    endpoint_type: Int8 = since(1, default=BROKER_ENDPOINT)
    cluster_id: String
    controller_id: Int32 = -1
    brokers: Sequence[DescribeClusterBroker] = ()
    authorized_operations: Int32 = NOT_ASKED


class DescribeClusterRequest(Request[DescribeClusterResponse], api=ApiKey.DESCRIBE_CLUSTER, flexible=0):
    """`endpoint_type`: the kind of endpoint that the client expects."""

    include_authorized_operations: Bool = False
    endpoint_type: Int8 = since(1, default=BROKER_ENDPOINT)
    include_fenced_brokers: Bool = since(2, default=False)

    def refused(self, code: ErrorCode, message: str) -> DescribeClusterResponse:
        """The refusal alone."""
        return DescribeClusterResponse(cluster_id="", error=code, message=message)
