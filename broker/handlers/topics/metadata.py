"""Metadata (key 3): this broker's address on the client's listener, topics, their partitions and leaders.

`topics` None lists all of them, an empty list none. An unknown topic is answered UNKNOWN_TOPIC_OR_PARTITION, or created
with the broker's defaults if the client allows it and auto.create.topics.enable is true; an illegal name is
INVALID_TOPIC_EXCEPTION. With topic ids instead of names, an unknown one is UNKNOWN_TOPIC_ID, and nothing is created. A
topic listed twice is answered once, as in Kafka: a small request must not describe a large topic a hundred thousand
times. A partition whose log directory is offline has this node as an offline replica. This broker is the controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.groups.log.offsets_topic import CONSUMER_OFFSETS
from barnabas.broker.handlers.topics.described_topics import describe_partition, unknown_topic
from barnabas.broker.quotas.mutation import mutation_quota
from barnabas.broker.transactions.topic import TRANSACTION_STATE
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from barnabas.protocol.messages.topics.metadata import MetadataRequest, MetadataResponse, TopicMetadata
from barnabas.protocol.messages.topics.topics import CreateTopicsRequest, NewTopic
from barnabas.protocol.topic_name import is_internal

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.metadata.image import TopicImage
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.metadata_changes import MetadataChanges
    from barnabas.broker.network.advertised import AdvertisedAddresses
    from barnabas.broker.network.session import Session
    from barnabas.broker.partitions.registry import PartitionRegistry

_ABOVE_QUOTA = ErrorCode.THROTTLING_QUOTA_EXCEEDED
_COORDINATOR_TOPICS = (CONSUMER_OFFSETS, TRANSACTION_STATE)


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
        if request.topic_ids is not None:
            return self._response(
                session, request, [self._topic_by_id(each) for each in dict.fromkeys(request.topic_ids)]
            )
        if request.topics is None:
            return self._answer(session, request, sorted(image.topics), {})
        names = list(dict.fromkeys(request.topics))
        missing = [name for name in names if name not in image.topics]
        if missing and request.allow_auto_creation and self._creates_topics:
            return self._create_and_answer(session, request, names, missing)
        return self._answer(session, request, names, {})

    async def _create_and_answer(
        self, session: Session, request: MetadataRequest, names: list[str], missing: list[str]
    ) -> MetadataResponse:
        try:
            created = await self._changes.create_topics(
                CreateTopicsRequest([self._new_topic(name) for name in missing]),
                mutation_quota(session, is_strict=True),
            )
        except BrokerError as error:
            return self._answer(session, request, names, dict.fromkeys(missing, error.code))
        # A topic that another client created meanwhile is refused here, but it is in the image and answered from there.
        # A topic above the client's quota is unknown: the client asks again later.
        refused = {result.name: result.error for result in created.topics if result.error is not _ABOVE_QUOTA}
        return self._answer(session, request, names, refused)

    def _new_topic(self, name: str) -> NewTopic:
        """Return the topic with the broker's defaults, or with the configs of a coordinator's topic."""
        for topic in _COORDINATOR_TOPICS:
            if topic.name == name:
                return topic.new_topic(self._config.broker)
        return NewTopic(name)

    def _answer(
        self, session: Session, request: MetadataRequest, names: list[str], refused: dict[str, ErrorCode]
    ) -> MetadataResponse:
        return self._response(session, request, [self._topic(name, refused.get(name)) for name in names])

    def _response(self, session: Session, request: MetadataRequest, topics: list[TopicMetadata]) -> MetadataResponse:
        if request.include_topic_operations:
            for topic in topics:
                topic.authorized_operations = TOPIC_OPERATIONS
        return MetadataResponse(
            cluster_id=self._store.cluster_id,
            brokers=[self._addresses.address_for(session)],
            topics=topics,
            controller_id=self._store.node_id,
            authorized_operations=CLUSTER_OPERATIONS if request.include_cluster_operations else NOT_ASKED,
        )

    def _topic_by_id(self, topic_id: bytes) -> TopicMetadata:
        topic = self._store.image.topic_by_id(topic_id)
        return TopicMetadata("", ErrorCode.UNKNOWN_TOPIC_ID, topic_id) if topic is None else self._known(topic)

    def _topic(self, name: str, refused: ErrorCode | None) -> TopicMetadata:
        topic = self._store.image.topics.get(name)
        if topic is not None:
            return self._known(topic)
        return unknown_topic(name) if refused is None else TopicMetadata(name, refused, is_internal=is_internal(name))

    def _known(self, topic: TopicImage) -> TopicMetadata:
        name = topic.name
        partitions = tuple(
            describe_partition(self._partitions, name, number, state, node_id=self._store.node_id)
            for number, state in sorted(topic.partitions.items())
        )
        return TopicMetadata(name, ErrorCode.NONE, topic.topic_id, partitions, is_internal(name))
