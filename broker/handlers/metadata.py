"""Metadata (key 3): this broker's address as the asking client reaches it, topics, their partitions and leaders.

`topics` None lists all of them, an empty list none. A topic that is unknown is answered UNKNOWN_TOPIC_OR_PARTITION, or
created with the broker's defaults when the client allows it and auto.create.topics.enable is true; a name that no topic
can have is INVALID_TOPIC_EXCEPTION.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse, PartitionMetadata, TopicMetadata
from barnabas.protocol.messages.topics import CreateTopicsRequest, NewTopic
from barnabas.protocol.topic_name import validate_topic_name

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from barnabas.broker.advertised import AdvertisedAddresses
    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.metadata.image import MetadataImage, TopicImage
    from barnabas.broker.metadata.store import MetadataStore
    from barnabas.broker.metadata_changes import MetadataChanges
    from barnabas.broker.session import Session


class MetadataHandler:
    """Serves Metadata."""

    def __init__(
        self, store: MetadataStore, addresses: AdvertisedAddresses, changes: MetadataChanges, config: LiveConfig
    ) -> None:
        self._store = store
        self._addresses = addresses
        self._changes = changes
        self._config = config

    def __call__(
        self, session: Session, request: MetadataRequest
    ) -> MetadataResponse | Coroutine[None, None, MetadataResponse]:
        """The answer to one request; the contract is at the top of the file."""
        image = self._store.image
        if request.topics is None:
            return self._answer(session, sorted(image.topics), {})
        missing = [name for name in request.topics if name not in image.topics]
        if missing and request.allow_auto_creation and self._config.broker.get_bool("auto.create.topics.enable"):
            return self._create_and_answer(session, request.topics, missing)
        return self._answer(session, request.topics, {})

    async def _create_and_answer(self, session: Session, names: list[str], missing: list[str]) -> MetadataResponse:
        try:
            created = await self._changes.create_topics(CreateTopicsRequest([NewTopic(name) for name in set(missing)]))
        except BrokerError as error:
            return self._answer(session, names, dict.fromkeys(missing, error.code))
        # Somebody else may have created it meanwhile: then it is in the image, which is all that was asked for.
        return self._answer(session, names, {result.name: result.error for result in created.topics})

    def _answer(self, session: Session, names: list[str], refused: dict[str, ErrorCode]) -> MetadataResponse:
        image = self._store.image
        return MetadataResponse(
            cluster_id=self._store.cluster_id,
            brokers=[self._addresses.address_for(session)],
            topics=[_topic(image, name, refused.get(name)) for name in names],
        )


def _topic(image: MetadataImage, name: str, refused: ErrorCode | None) -> TopicMetadata:
    topic: TopicImage | None = image.topics.get(name)
    if topic is not None:
        return TopicMetadata(
            name,
            ErrorCode.NONE,
            topic.topic_id,
            tuple(
                PartitionMetadata(
                    number,
                    ErrorCode.NONE if state.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
                    state.leader,
                    state.leader_epoch,
                )
                for number, state in sorted(topic.partitions.items())
            ),
        )
    if refused is not None:
        return TopicMetadata(name, refused)
    try:
        validate_topic_name(name)
    except BrokerError as error:
        return TopicMetadata(name, error.code)
    return TopicMetadata(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
