"""DescribeCluster (key 60): the cluster id, and this broker's address on the client's listener.

This broker is the controller too. A request for controllers' endpoints is answered MISMATCHED_ENDPOINT_TYPE, as by
Kafka's brokers; an unknown endpoint type UNSUPPORTED_ENDPOINT_TYPE. Every client sees the broker; the cluster's
operations are 0 for a client that may not DESCRIBE the cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.authorization import cluster_operations
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.authorized_operations import NOT_ASKED
from barnabas.protocol.messages.cluster.describe_cluster import (
    BROKER_ENDPOINT,
    CONTROLLER_ENDPOINT,
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.network.advertised import AdvertisedAddresses
    from barnabas.broker.network.session import Session


class DescribeClusterHandler:
    """Serves DescribeCluster."""

    def __init__(self, store: MetadataView, addresses: AdvertisedAddresses) -> None:
        self._store = store
        self._addresses = addresses

    def __call__(self, session: Session, request: DescribeClusterRequest) -> DescribeClusterResponse:
        """Answer one DescribeCluster request as the module docstring specifies."""
        if request.endpoint_type == CONTROLLER_ENDPOINT:
            message = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
            raise BrokerError(ErrorCode.MISMATCHED_ENDPOINT_TYPE, message)
        if request.endpoint_type != BROKER_ENDPOINT:
            message = f"Unsupported endpoint type {request.endpoint_type}"
            raise BrokerError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, message)
        address = self._addresses.address_for(session)
        return DescribeClusterResponse(
            cluster_id=self._store.cluster_id,
            controller_id=self._store.node_id,
            brokers=[DescribeClusterBroker(node_id=address.node_id, host=address.host, port=address.port)],
            authorized_operations=cluster_operations(session, ApiKey.DESCRIBE_CLUSTER)
            if request.include_authorized_operations
            else NOT_ASKED,
        )
