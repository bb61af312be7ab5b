"""ListConfigResources (key 74): this broker, its loggers, the topics, and the groups and client metrics with configs.

CLUSTER_AUTHORIZATION_FAILED if the client may not DESCRIBE_CONFIGS of the cluster. A type unknown to Kafka is
UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.authorization import ensure_cluster_allowed
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.configs import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    LOGGER_RESOURCE,
    TOPIC_RESOURCE,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    ListedConfigResource,
)
from barnabas.protocol.messages.security.resources import Operation

if TYPE_CHECKING:
    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.network.session import Session

_TYPES: Final = frozenset({TOPIC_RESOURCE, BROKER_RESOURCE, LOGGER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE})


class ListConfigResourcesHandler:
    """Serves ListConfigResources."""

    def __init__(self, store: MetadataView) -> None:
        self._store = store

    def __call__(self, session: Session, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
        """Answer one ListConfigResources request as the module docstring specifies."""
        ensure_cluster_allowed(session, Operation.DESCRIBE_CONFIGS, ApiKey.LIST_CONFIG_RESOURCES)
        types = request.wanted
        unknown = set(types) - _TYPES
        if unknown:
            raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, f"Unknown resource type {min(unknown)}")
        image = self._store.image
        names: dict[int, list[str]] = {
            LOGGER_RESOURCE: [str(self._store.node_id)],
            BROKER_RESOURCE: [str(self._store.node_id)],
            TOPIC_RESOURCE: sorted(image.topics),
            GROUP_RESOURCE: _configured(image, GROUP_RESOURCE),
            CLIENT_METRICS_RESOURCE: _configured(image, CLIENT_METRICS_RESOURCE),
        }
        return ListConfigResourcesResponse(
            resources=[
                ListedConfigResource(type=kind, name=name) for kind in names if kind in types for name in names[kind]
            ]
        )


def _configured(image: MetadataImage, kind: int) -> list[str]:
    return sorted(name for of_kind, name in image.configs if of_kind == kind)
