"""DescribeCluster (key 60): the cluster's id, its brokers and its controller."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.authorized_operations import NOT_ASKED
from barnabas.protocol.messages.topics.metadata import BrokerAddress

BROKER_ENDPOINT = 1
CONTROLLER_ENDPOINT = 2


@dataclass(slots=True)
class DescribeClusterRequest:
    """`endpoint_type`: the kind of endpoint that the client expects."""

    include_authorized_operations: bool = False
    endpoint_type: int = BROKER_ENDPOINT


@dataclass(slots=True)
class DescribeClusterResponse:
    """`cluster_id` is the text of an id; `controller_id` one of the brokers'."""

    cluster_id: str
    controller_id: int
    brokers: list[BrokerAddress]
    authorized_operations: int = NOT_ASKED
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
