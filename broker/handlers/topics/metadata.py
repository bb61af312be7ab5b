"""Metadata (key 3): this broker's address on the client's listener, topics, their partitions and leaders.

A topic that the client may not DESCRIBE is TOPIC_AUTHORIZATION_FAILED, with its name or its id, whichever was given,
and nothing else; if all are listed, it is left out. A missing topic that would be created needs CREATE on the cluster
or on it, else it is TOPIC_AUTHORIZATION_FAILED too.

`topics` None lists all of them, an empty list none. An unknown topic is answered UNKNOWN_TOPIC_OR_PARTITION, or created
with the broker's defaults if the client allows it and auto.create.topics.enable is true; an illegal name is
INVALID_TOPIC_EXCEPTION. With topic ids instead of names, an unknown one is UNKNOWN_TOPIC_ID, and nothing is created. A
topic listed twice is answered once, as in Kafka: a small request must not describe a large topic a hundred thousand
times. A partition whose log directory is offline has this node as an offline replica. This broker is the controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.groups.log.offsets_topic import CONSUMER_OFFSETS
from barnabas.broker.handlers.authorization import (
    cluster_operations,
    denied_names,
    is_cluster_allowed,
    topic_operations,
)
from barnabas.broker.handlers.topics.described_topics import describe_partition, unknown_topic
from barnabas.broker.quotas.mutation import mutation_quota
from barnabas.broker.transactions.topic import TRANSACTION_STATE
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.authorized_operations import NOT_ASKED
from barnabas.protocol.messages.security.resources import Operation, ResourceType
from barnabas.protocol.messages.topics.metadata import MetadataRequest, MetadataResponse, TopicMetadata
from barnabas.protocol.messages.topics.topics import CreateTopicsRequest, NewTopic
from barnabas.protocol.topic_name import is_internal

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.metadata.image import TopicImage
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.metadata_changes import MetadataChanges
    from barnabas.broker.network.advertised import AdvertisedAddresses
    from barnabas.broker.network.session import Session
    from barnabas.broker.partitions.registry import PartitionRegistry

_ABOVE_QUOTA = ErrorCode.THROTTLING_QUOTA_EXCEEDED
_COORDINATOR_TOPICS = (CONSUMER_OFFSETS, TRANSACTION_STATE)


_WITHOUT_OPERATIONS = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


class _Asked(NamedTuple):
    """The topics to answer, by name; `denied` may not be described, `refused` are missing and were not created."""

    names: list[str]
    denied: frozenset[str] = frozenset()
    refused: Mapping[str, ErrorCode] = {}


class MetadataHandler:
    """Serves Metadata."""

    def __init__(
        self,
        store: MetadataView,
        partitions: PartitionRegistry,
        addresses: AdvertisedAddresses,
        changes: MetadataChanges,
        config: LiveConfig,
    ) -> None:
        self._store = store
        self._partitions = partitions
        self._addresses = addresses
        self._changes = changes
        self._config = config

    @property
    def _creates_topics(self) -> bool:
        config = self._config.broker
        return config.get_bool("auto.create.topics.enable") and not config.get_bool("read.only")

    def __call__(
        self, session: Session, request: MetadataRequest
    ) -> MetadataResponse | Coroutine[None, None, MetadataResponse]:
        """Describe the topics. Returns a coroutine if topics must be created first."""
        image = self._store.image
        api = ApiKey.METADATA
        if request.topic_ids is not None:
            ids = list(dict.fromkeys(request.topic_ids))
            known = [image.names[each] for each in ids if each in image.names]
            denied = denied_names(session, Operation.DESCRIBE, ResourceType.TOPIC, known, api)
            return self._response(session, request, [self._topic_by_id(each, denied) for each in ids])
        if request.topics is None:
            names = sorted(image.topics)
            if session.access is not None:
                may_describe = session.access.describe_topic
                names = [name for name in names if may_describe[name]]
            return self._answer(session, request, _Asked(names))
        names = list(dict.fromkeys(request.topics))
        denied = denied_names(session, Operation.DESCRIBE, ResourceType.TOPIC, names, api)
        refused: dict[str, ErrorCode] = {}
        missing = [name for name in names if name not in image.topics and name not in denied]
        if missing and request.allow_auto_creation and self._creates_topics:
            if not is_cluster_allowed(session, Operation.CREATE, api, log_denied=False):
                kept = denied_names(session, Operation.CREATE, ResourceType.TOPIC, missing, api)
                refused = dict.fromkeys(kept, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                missing = [name for name in missing if name not in kept]
            if missing:
                return self._create_and_answer(session, request, _Asked(names, denied, refused), missing)
        return self._answer(session, request, _Asked(names, denied, refused))

    async def _create_and_answer(
        self, session: Session, request: MetadataRequest, asked: _Asked, missing: list[str]
    ) -> MetadataResponse:
        try:
            created = await self._changes.create_topics(
                CreateTopicsRequest([self._new_topic(name) for name in missing]),
                mutation_quota(session, is_strict=True),
            )
        except BrokerError as error:
            refused = dict.fromkeys(missing, error.code)
        else:
            # A topic above the client's quota is unknown: the client asks again later.
            refused = {result.name: result.error for result in created.topics if result.error is not _ABOVE_QUOTA}
        # A topic that another client created meanwhile is refused here, but it is in the image and answered from there.
        return self._answer(session, request, asked._replace(refused={**asked.refused, **refused}))

    def _new_topic(self, name: str) -> NewTopic:
        """Return the topic with the broker's defaults, or with the configs of a coordinator's topic."""
        for topic in _COORDINATOR_TOPICS:
            if topic.name == name:
                return topic.new_topic(self._config.broker)
        return NewTopic(name)

    def _answer(self, session: Session, request: MetadataRequest, asked: _Asked) -> MetadataResponse:
        return self._response(session, request, [self._topic(name, asked) for name in asked.names])

    def _response(self, session: Session, request: MetadataRequest, topics: list[TopicMetadata]) -> MetadataResponse:
        if request.include_topic_operations:
            for topic in topics:
                if topic.error not in _WITHOUT_OPERATIONS:
                    topic.authorized_operations = topic_operations(session, topic.name)
        return MetadataResponse(
            cluster_id=self._store.cluster_id,
            brokers=[self._addresses.address_for(session)],
            topics=topics,
            controller_id=self._store.node_id,
            authorized_operations=cluster_operations(session, ApiKey.METADATA)
            if request.include_cluster_operations
            else NOT_ASKED,
        )

    def _topic_by_id(self, topic_id: bytes, denied: frozenset[str]) -> TopicMetadata:
        topic = self._store.image.topic_by_id(topic_id)
        if topic is None:
            return TopicMetadata("", ErrorCode.UNKNOWN_TOPIC_ID, topic_id)
        if topic.name in denied:
            return TopicMetadata("", ErrorCode.TOPIC_AUTHORIZATION_FAILED, topic_id)
        return self._known(topic)

    def _topic(self, name: str, asked: _Asked) -> TopicMetadata:
        if name in asked.denied:
            return TopicMetadata(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        topic = self._store.image.topics.get(name)
        if topic is not None:
            return self._known(topic)
        error = asked.refused.get(name)
        return unknown_topic(name) if error is None else TopicMetadata(name, error, is_internal=is_internal(name))

    def _known(self, topic: TopicImage) -> TopicMetadata:
        name = topic.name
        partitions = tuple(
            describe_partition(self._partitions, name, number, state, node_id=self._store.node_id)
            for number, state in sorted(topic.partitions.items())
        )
        return TopicMetadata(name, ErrorCode.NONE, topic.topic_id, partitions, is_internal(name))
