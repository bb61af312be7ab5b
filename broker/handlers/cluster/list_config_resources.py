"""ListConfigResources (key 74): this broker, the topics, and the groups with configs, by resource type.

CLUSTER_AUTHORIZATION_FAILED if the client may not DESCRIBE_CONFIGS of the cluster. Kafka's other types have no
resources here: an empty list. A type unknown to Kafka is UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.authorization import ensure_cluster_allowed
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.configs import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE, ConfigResource
from barnabas.protocol.messages.cluster.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from barnabas.protocol.messages.security.resources import Operation

if TYPE_CHECKING:
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.network.session import Session

_WITHOUT_RESOURCES: Final = frozenset({8, 16})
"""BROKER_LOGGER, CLIENT_METRICS."""


class ListConfigResourcesHandler:
    """Serves ListConfigResources."""

    def __init__(self, store: MetadataView) -> None:
        self._store = store

    def __call__(self, session: Session, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
        """Answer one ListConfigResources request as the module docstring specifies."""
        ensure_cluster_allowed(session, Operation.DESCRIBE_CONFIGS, ApiKey.LIST_CONFIG_RESOURCES)
        unknown = set(request.types) - _WITHOUT_RESOURCES - {TOPIC_RESOURCE, BROKER_RESOURCE, GROUP_RESOURCE}
        if unknown:
            raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, f"Unknown resource type {min(unknown)}")
        resources = []
        if BROKER_RESOURCE in request.types:
            resources.append(ConfigResource(BROKER_RESOURCE, str(self._store.node_id)))
        if TOPIC_RESOURCE in request.types:
            resources += [ConfigResource(TOPIC_RESOURCE, name) for name in sorted(self._store.image.topics)]
        if GROUP_RESOURCE in request.types:
            groups = sorted(name for kind, name in self._store.image.configs if kind == GROUP_RESOURCE)
            resources += [ConfigResource(GROUP_RESOURCE, group_id) for group_id in groups]
        return ListConfigResourcesResponse(resources)
