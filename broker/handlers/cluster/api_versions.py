"""ApiVersions (key 18; hello in the native dialect): the served APIs, and the broker's name and version.

Kafka's dialect adds the cluster's features: metadata.version, share.version and transaction.version from the metadata
log, and group.version, which is 1 while consumer groups are served. group.version is not written to the log, because
Kafka 3.7 would not start on it. The APIs of client metrics are listed with client.metrics.enable=true; Barnabas' own,
whose keys begin at 10,000, to clients that name their software barnabas, and to them also versions that Kafka holds
back as unstable (to others with unstable.api.versions.enable=true). Being listed gives no right to use an API. A
feature whose lowest level is 0 is left out below version 4, whose readers do not expect it. INVALID_REQUEST for a
client whose software has no proper name; an unsupported version is answered by protocol/kafka/dialect.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas import __version__
from barnabas.broker.metadata.served_features import served_features
from barnabas.protocol.kafka.apis import KAFKA_APIS, OWN_APIS
from barnabas.protocol.messages.api_key import OWN_KEYS, OWN_SOFTWARE, ApiKey
from barnabas.protocol.messages.cluster.api_versions import (
    ApiVersionRange,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeature,
    SupportedFeature,
)
from barnabas.protocol.wire.fields import LATEST
from barnabas.protocol.wire.structures import Encoded

if TYPE_CHECKING:
    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.network.session import Session


_ZERO_VERSIONS_FROM: Final = 4
_CLIENT_METRICS: Final = frozenset((ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY))


class ApiVersionsHandler:
    """Serves ApiVersions. Answers are encoded once for each metadata image, which has the features."""

    def __init__(
        self,
        store: MetadataView,
        has_consumer_groups: bool,
        max_frame_bytes: int,
        has_client_metrics: bool,
        lists_unstable: bool,
    ) -> None:
        self._store = store
        self._has_consumer_groups = has_consumer_groups
        self._image: MetadataImage | None = None
        self._unlisted: frozenset[int] = frozenset() if has_client_metrics else _CLIENT_METRICS
        self._lists_unstable = lists_unstable
        self._encoded: dict[tuple[int, bool], Encoded] = {}
        self._hello = ApiVersionsResponse(
            server="barnabas",
            server_version=__version__,
            cluster_id=store.cluster_id,
            node_id=store.node_id,
            max_frame_bytes=max_frame_bytes,
        )

    def __call__(self, session: Session, request: ApiVersionsRequest) -> ApiVersionsResponse | Encoded:
        """Answer one ApiVersions request as the module docstring specifies."""
        request.check()
        if request.client:
            session.software = (request.client, request.client_version)
        if request.version == LATEST:
            return self._hello
        image = self._store.image
        if image is not self._image:
            self._image = image
            self._encoded.clear()
        key = request.version, request.client == OWN_SOFTWARE
        encoded = self._encoded.get(key)
        if encoded is None:
            encoded = self._encoded[key] = Encoded(self._answer(*key).encode(request.version))
        return encoded

    def _answer(self, version: int, is_own: bool) -> ApiVersionsResponse:
        image = self._store.image
        unlisted = self._unlisted if is_own else self._unlisted.union(OWN_KEYS)
        features = served_features(image, has_consumer_groups=self._has_consumer_groups)
        return ApiVersionsResponse(
            apis=[
                ApiVersionRange(
                    api=each.key,
                    min_version=each.lowest if each.advertised_from is None else each.advertised_from,
                    max_version=each.highest_for(unstable=is_own or self._lists_unstable),
                )
                for each in (*KAFKA_APIS, *OWN_APIS)
                if each.key not in unlisted
            ],
            supported_features=[
                SupportedFeature(name=each.name, min_version=each.min_version, max_version=each.max_version)
                for each in features
                if each.min_version > 0 or version >= _ZERO_VERSIONS_FROM
            ],
            features_epoch=image.end_offset - 1 if features else -1,
            finalized_features=[
                FinalizedFeature(name=each.name, max_level=each.level, min_level=each.level)
                for each in features
                if each.level > 0
            ],
        )
