"""CreateTopics (19), DeleteTopics (20), CreatePartitions (37): an error and a message for each topic.

One topic's refusal never fails the others. A change answered without an error is durable: the metadata log was flushed,
and the directories exist. The checks are those of `broker.metadata.topics`; a topic that Apache Kafka 4.x
would refuse to open is created with a warning as its message. Partitions count in the client's quota of controller
mutations; above it, THROTTLING_QUOTA_EXCEEDED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.config_entries import topic_entries
from barnabas.broker.quotas.mutation import mutation_quota
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.topics.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    TopicsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.metadata.topics import TakeQuota
    from barnabas.broker.metadata_changes import MetadataChanges
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe


class CreateTopicsHandler:
    """Serves CreateTopics."""

    def __init__(self, changes: MetadataChanges, config: LiveConfig, probe: ApiProbe) -> None:
        self._changes = changes
        self._config = config
        self._probe = probe

    async def __call__(self, session: Session, request: CreateTopicsRequest) -> TopicsResponse:
        """Answer one CreateTopics request as the module docstring specifies."""
        response = _counted(await self._changes.create_topics(request, _quota(session, request)), self._probe)
        if request.describe:
            for asked, result in zip(request.topics, response.topics, strict=True):
                if result.error is ErrorCode.NONE:
                    configs = {name: value for name, value in asked.configs.items() if value is not None}
                    result.configs = topic_entries(self._config.broker, configs, with_docs=False)
        return response


class DeleteTopicsHandler:
    """Serves DeleteTopics."""

    def __init__(self, changes: MetadataChanges, probe: ApiProbe) -> None:
        self._changes = changes
        self._probe = probe

    async def __call__(self, session: Session, request: DeleteTopicsRequest) -> TopicsResponse:
        """Answer one DeleteTopics request as the module docstring specifies."""
        return _counted(await self._changes.delete_topics(request, _quota(session, request)), self._probe)


class CreatePartitionsHandler:
    """Serves CreatePartitions."""

    def __init__(self, changes: MetadataChanges, probe: ApiProbe) -> None:
        self._changes = changes
        self._probe = probe

    async def __call__(self, session: Session, request: CreatePartitionsRequest) -> TopicsResponse:
        """Answer one CreatePartitions request as the module docstring specifies."""
        return _counted(await self._changes.create_partitions(request, _quota(session, request)), self._probe)


def _quota(session: Session, request: CreateTopicsRequest | DeleteTopicsRequest | CreatePartitionsRequest) -> TakeQuota:
    """Return what counts the request's partitions."""
    return mutation_quota(session, is_strict=request.is_quota_strict)


def _counted(response: TopicsResponse, probe: ApiProbe) -> TopicsResponse:
    for topic in response.topics:
        if topic.error is not ErrorCode.NONE:
            probe.count_error(topic.error.name.lower())
    return response
