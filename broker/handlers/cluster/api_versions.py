"""ApiVersions (key 18; hello in the native dialect): the served APIs, and the broker's name and version. Never fails.

Kafka's dialect adds the cluster's features: metadata.version, share.version and transaction.version from the metadata
log, and group.version, which is 1 while consumer groups are served. group.version is not written to the log, because
Kafka 3.7 would not start on it. The APIs of client metrics are listed with client.metrics.enable=true; Barnabas' own,
whose keys begin at 10,000, to clients that name their software barnabas. Being listed gives no right to use an API.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from barnabas import __version__
from barnabas.broker.metadata.served_features import served_features
from barnabas.protocol.messages.api_key import OWN_KEYS, OWN_SOFTWARE, ApiKey
from barnabas.protocol.messages.cluster.api_versions import (
    ApiVersionRange,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from barnabas.protocol.native.apis import NATIVE_APIS, VERSION

if TYPE_CHECKING:
    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.network.session import Session


_CLIENT_METRICS: Final = frozenset((ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY))


class ApiVersionsHandler:
    """Serves ApiVersions. Answers are built, and encoded, once for each metadata image, which has the features."""

    def __init__(
        self, store: MetadataView, has_consumer_groups: bool, max_frame_bytes: int, has_client_metrics: bool
    ) -> None:
        self._store = store
        self._has_consumer_groups = has_consumer_groups
        self._image: MetadataImage | None = None
        unlisted: frozenset[int] = frozenset() if has_client_metrics else _CLIENT_METRICS
        own = ApiVersionsResponse(
            server="barnabas",
            server_version=__version__,
            cluster_id=store.cluster_id,
            node_id=store.node_id,
            apis=[ApiVersionRange(int(api), VERSION, VERSION) for api in sorted(NATIVE_APIS)],
            max_frame_bytes=max_frame_bytes,
            unlisted=unlisted,
        )
        self._responses = replace(own, unlisted=unlisted.union(OWN_KEYS), encoded={}), own
        """For other clients, and for those of Barnabas."""

    def __call__(self, session: Session, request: ApiVersionsRequest) -> ApiVersionsResponse:
        """Answer one ApiVersions request as the module docstring specifies."""
        if request.client:
            session.software = (request.client, request.client_version)
        image = self._store.image
        if image is not self._image:
            self._image = image
            features = served_features(image, has_consumer_groups=self._has_consumer_groups)
            epoch = image.end_offset - 1 if features else -1
            others, own = (
                replace(each, features=features, features_epoch=epoch, encoded={}) for each in self._responses
            )
            self._responses = others, own
        return self._responses[request.client == OWN_SOFTWARE]
