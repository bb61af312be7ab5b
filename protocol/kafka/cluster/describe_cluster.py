"""DescribeCluster (60), versions 0-2: from version 1 on for brokers or controllers, version 2 knows fenced brokers."""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.cluster.describe_cluster import (
    BROKER_ENDPOINT,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

_API: Final = "describe_cluster"


def decode_request(version: int, body: memoryview) -> DescribeClusterRequest:
    """Raises DecodeError."""
    request = entities.read_request(_API, version, body)
    return DescribeClusterRequest(
        request.include_cluster_authorized_operations, getattr(request, "endpoint_type", BROKER_ENDPOINT)
    )


def encode_response(version: int, response: DescribeClusterResponse) -> bytes:
    """The cluster."""
    schema = entities.response_schema(_API, version)
    return entities.write(
        entities.make(
            schema.DescribeClusterResponse,
            throttle_time=entities.NO_THROTTLE,
            error_code=ErrorCode.NONE,
            endpoint_type=BROKER_ENDPOINT,
            cluster_id=response.cluster_id,
            controller_id=response.controller_id,
            brokers=tuple(
                entities.make(
                    schema.DescribeClusterBroker,
                    broker_id=broker.node_id,
                    host=broker.host,
                    port=broker.port,
                    rack=None,
                    is_fenced=False,
                )
                for broker in response.brokers
            ),
            cluster_authorized_operations=response.authorized_operations,
        )
    )


def encode_error(version: int, request: Any, code: ErrorCode, message: str) -> bytes:
    """A refusal."""
    schema = entities.response_schema(_API, version)
    return entities.write(
        entities.make(
            schema.DescribeClusterResponse,
            throttle_time=entities.NO_THROTTLE,
            error_code=code,
            error_message=entities.sentence(message),
            cluster_id="",
            brokers=(),
        )
    )
