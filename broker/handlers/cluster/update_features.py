"""UpdateFeatures (key 57): changes finalized levels of features, all of a request's or none.

CLUSTER_AUTHORIZATION_FAILED if the client may not ALTER the cluster; INVALID_UPDATE_VERSION with Kafka's message for
the whole request if one update is refused (broker/metadata/features.py has the rules); KAFKA_STORAGE_ERROR if the
metadata log cannot be written. Versions 0 and 1 list each feature on success. Unlike Kafka, version 0's flag that
allows a downgrade counts: Kafka's KRaft controller ignores it. An update to the present level writes no record.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.broker.handlers.authorization import ensure_cluster_allowed
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from barnabas.protocol.messages.security.resources import Operation

if TYPE_CHECKING:
    from barnabas.broker.metadata_changes import MetadataChanges
    from barnabas.broker.network.session import Session

logger = logging.getLogger(__name__)


class UpdateFeaturesHandler:
    """Serves UpdateFeatures."""

    def __init__(self, changes: MetadataChanges, has_consumer_groups: bool) -> None:
        self._changes = changes
        self._has_consumer_groups = has_consumer_groups

    async def __call__(self, session: Session, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
        """Answer one UpdateFeatures request as the module docstring specifies."""
        ensure_cluster_allowed(session, Operation.ALTER, ApiKey.UPDATE_FEATURES)
        results = await self._changes.update_features(request, has_consumer_groups=self._has_consumer_groups)
        if not request.validate_only:
            for update in request.updates:
                logger.info("%s is %d, changed by %s", update.name, update.level, session)
        return UpdateFeaturesResponse(results=results)
