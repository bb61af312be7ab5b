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

from barnabas.broker.handlers.authorization import (
    cluster_operations,
    is_cluster_allowed,
    topic_operations,
)
from barnabas.broker.handlers.topics.described_topics import describe_partition, unknown_topic
from barnabas.broker.handlers.turns import Turns, denied_in_turns, in_turns
from barnabas.broker.quotas.mutation import mutation_quota
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.authorized_operations import NOT_ASKED
from barnabas.protocol.messages.security.resources import Operation, ResourceType
from barnabas.protocol.messages.topics.metadata import MetadataRequest, MetadataResponse, TopicMetadata
from barnabas.protocol.topic_name import is_internal

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence

    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.metadata.image import MetadataImage, TopicImage
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.metadata_changes import MetadataChanges
    from barnabas.broker.network.advertised import AdvertisedAddresses
    from barnabas.broker.network.session import Session
    from barnabas.broker.partitions.registry import PartitionRegistry

_ABOVE_QUOTA = ErrorCode.THROTTLING_QUOTA_EXCEEDED


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
        """Describe the topics. Returns a coroutine if topics must be created first, or if there are many.

        Raises BrokerError INVALID_REQUEST for ids in a version that takes none.
        """
        topic_ids = request.topic_ids
        if topic_ids is not None:
            return in_turns(self._describe_ids(session, request, topic_ids))
        names = request.names
        if names is None:
            return in_turns(self._describe_all(session, request))
        if request.allow_auto_creation and self._creates_topics:
            missing = [name for name in dict.fromkeys(names) if name not in self._store.image.topics]
            if missing:
                return self._create_and_describe(session, request, names, missing)
        return in_turns(self._describe_names(session, request, names))

    async def _describe_ids(self, session: Session, request: MetadataRequest, ids: Sequence[bytes]) -> MetadataResponse:
        turns = Turns()
        image = self._store.image
        ids = list(dict.fromkeys(ids))
        known = [image.names[each] for each in ids if each in image.names]
        denied = await denied_in_turns(turns, session, Operation.DESCRIBE, ResourceType.TOPIC, known, ApiKey.METADATA)
        topics = []
        for each in ids:
            # By the image of the decisions: a topic that was created meanwhile was not decided about.
            topics.append(self._topic_by_id(image, each, denied))
            if turns.is_over:
                await turns.next()
        return await self._response(turns, session, request, topics)

    async def _describe_all(self, session: Session, request: MetadataRequest) -> MetadataResponse:
        turns = Turns()
        names = sorted(self._store.image.topics)
        if session.access is not None:
            may_describe = session.access.describe_topic
            listed = names
            names = []
            for name in listed:
                if may_describe[name]:
                    names.append(name)
                if turns.is_over:
                    await turns.next()
        return await self._answer(turns, session, request, _Asked(names))

    async def _describe_names(
        self, session: Session, request: MetadataRequest, topics: Sequence[str]
    ) -> MetadataResponse:
        turns = Turns()
        names = list(dict.fromkeys(topics))
        denied = await denied_in_turns(turns, session, Operation.DESCRIBE, ResourceType.TOPIC, names, ApiKey.METADATA)
        return await self._answer(turns, session, request, _Asked(names, denied))

    async def _create_and_describe(
        self, session: Session, request: MetadataRequest, topics: Sequence[str], missing: list[str]
    ) -> MetadataResponse:
        """Create the missing topics that the client may describe and create, then describe all."""
        turns = Turns()
        api = ApiKey.METADATA
        names = list(dict.fromkeys(topics))
        denied = await denied_in_turns(turns, session, Operation.DESCRIBE, ResourceType.TOPIC, names, api)
        refused: dict[str, ErrorCode] = {}
        missing = [name for name in missing if name not in denied]
        if missing and not is_cluster_allowed(session, Operation.CREATE, api, log_denied=False):
            kept = await denied_in_turns(turns, session, Operation.CREATE, ResourceType.TOPIC, missing, api)
            refused = dict.fromkeys(kept, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            missing = [name for name in missing if name not in kept]
        asked = _Asked(names, denied, refused)
        if missing:
            return await self._create_and_answer(session, request, asked, missing)
        return await self._answer(turns, session, request, asked)

    async def _create_and_answer(
        self, session: Session, request: MetadataRequest, asked: _Asked, missing: list[str]
    ) -> MetadataResponse:
        from barnabas.protocol.messages.topics.topics import CreateTopicsRequest, NewTopic  # late: seldom needed

        try:
            created = await self._changes.create_topics(
                CreateTopicsRequest(topics=[NewTopic(name=name) for name in missing]),
                mutation_quota(session, is_strict=True),
            )
        except BrokerError as error:
            refused = dict.fromkeys(missing, error.code)
        else:
            # A topic above the client's quota is unknown: the client asks again later.
            results = zip(missing, created, strict=True)
            refused = {name: result.error for name, result in results if result.error is not _ABOVE_QUOTA}
        # A topic that another client created meanwhile is refused here, but it is in the image and answered from there.
        return await self._answer(Turns(), session, request, asked._replace(refused={**asked.refused, **refused}))

    async def _answer(
        self, turns: Turns, session: Session, request: MetadataRequest, asked: _Asked
    ) -> MetadataResponse:
        topics = []
        for name in asked.names:
            topics.append(self._topic(name, asked))
            if turns.is_over:
                await turns.next()
        return await self._response(turns, session, request, topics)

    async def _response(
        self, turns: Turns, session: Session, request: MetadataRequest, topics: list[TopicMetadata]
    ) -> MetadataResponse:
        if request.include_topic_operations:
            for topic in topics:
                if topic.error not in _WITHOUT_OPERATIONS:
                    topic.authorized_operations = topic_operations(session, topic.topic_name)
                if turns.is_over:
                    await turns.next()
        return MetadataResponse(
            cluster_id=self._store.cluster_id,
            brokers=[self._addresses.address_for(session)],
            topics=topics,
            controller_id=self._store.node_id,
            authorized_operations=cluster_operations(session, ApiKey.METADATA)
            if request.include_cluster_operations
            else NOT_ASKED,
        )

    def _topic_by_id(self, image: MetadataImage, topic_id: bytes, denied: frozenset[str]) -> TopicMetadata:
        topic = image.topic_by_id(topic_id)
        if topic is None:
            return TopicMetadata(name=None, error=ErrorCode.UNKNOWN_TOPIC_ID, topic_id=topic_id)
        if topic.name in denied:
            return TopicMetadata(name=None, error=ErrorCode.TOPIC_AUTHORIZATION_FAILED, topic_id=topic_id)
        return self._known(topic)

    def _topic(self, name: str, asked: _Asked) -> TopicMetadata:
        if name in asked.denied:
            return TopicMetadata(name=name, error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        topic = self._store.image.topics.get(name)
        if topic is not None:
            return self._known(topic)
        error = asked.refused.get(name)
        if error is None:
            return unknown_topic(name)
        return TopicMetadata(name=name, error=error, is_internal=is_internal(name))

    def _known(self, topic: TopicImage) -> TopicMetadata:
        name = topic.name
        partitions = tuple(
            describe_partition(self._partitions, name, number, state, node_id=self._store.node_id)
            for number, state in sorted(topic.partitions.items())
        )
        return TopicMetadata(name=name, topic_id=topic.topic_id, is_internal=is_internal(name), partitions=partitions)
