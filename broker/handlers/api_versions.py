"""ApiVersions (key 18; hello in the native dialect): what is served here, and by whom. Never fails.

Kafka's dialect also names the cluster's features. Only metadata.version is one here: groups of the new protocol and
transactions would be group.version and transaction.version, and a client that sees those believes in them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from barnabas import __version__
from barnabas.protocol.messages.api_versions import ApiVersionRange, ApiVersionsRequest, ApiVersionsResponse, Feature
from barnabas.protocol.metadata.levels import METADATA_VERSION, NEWEST_KNOWN_LEVEL, OLDEST_KNOWN_LEVEL
from barnabas.protocol.native.apis import NATIVE_APIS
from barnabas.protocol.native.codec import VERSION

if TYPE_CHECKING:
    from barnabas.broker.metadata.store import MetadataStore
    from barnabas.broker.session import Session


class ApiVersionsHandler:
    """Serves ApiVersions: the same answer for everybody, made once but for the features, which a change may raise."""

    def __init__(self, store: MetadataStore, max_frame_bytes: int) -> None:
        self._store = store
        self._response = ApiVersionsResponse(
            server="barnabas",
            server_version=__version__,
            cluster_id=store.cluster_id,
            node_id=store.node_id,
            apis=[ApiVersionRange(int(api), VERSION, VERSION) for api in sorted(NATIVE_APIS)],
            max_frame_bytes=max_frame_bytes,
        )

    def __call__(self, session: Session, request: ApiVersionsRequest) -> ApiVersionsResponse:
        """The answer to one request; the contract is at the top of the file."""
        image = self._store.image
        if image.level is None:
            return self._response
        feature = Feature(METADATA_VERSION, OLDEST_KNOWN_LEVEL, NEWEST_KNOWN_LEVEL, image.level)
        return replace(self._response, features=[feature], features_epoch=image.end_offset - 1)
