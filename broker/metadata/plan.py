"""Planning of metadata changes: answers for the client, and records for the writer to append."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, NamedTuple, TypeVar

from barnabas.broker.metadata.image import ConfigScope, MetadataImage, TopicImage
from barnabas.broker.metadata.image_builder import ImageBuilder
from barnabas.broker.metadata.mirrors.image import MirrorsImage
from barnabas.protocol.metadata.records import MetadataRecord

Result = TypeVar("Result")


class Plan(NamedTuple, Generic[Result]):
    """`results` in the order of the request; `records` of the items that succeeded, to be appended together."""

    results: list[Result]
    records: list[MetadataRecord]


class PlanningImage:
    """The image with the records planned so far, so that each item of a request sees the items before it.

    The image is copied once for the whole request: the cost of an item does not depend on the number of topics.
    """

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        """Without the planned records."""
        self.records: list[MetadataRecord] = []
        self._builder = ImageBuilder(image)

    def add(self, records: list[MetadataRecord]) -> None:
        """Apply `records` and plan them."""
        for record in records:
            self._builder.apply(record)
        self.records += records

    def topic(self, name: str) -> TopicImage | None:
        """Return the topic of that name."""
        return self._builder.topic(name)

    def topic_by_id(self, topic_id: bytes) -> TopicImage | None:
        """Return the topic with that id."""
        return self._builder.topic_by_id(topic_id)

    def configs(self, scope: ConfigScope) -> Mapping[str, str]:
        """Return the configs set for a topic, a broker, all brokers, or a group."""
        return self._builder.configs(scope)

    @property
    def mirrors(self) -> MirrorsImage:
        """The mirrors."""
        return self._builder.mirrors

    @property
    def next_producer_id(self) -> int:
        """The first id of the next block of producer ids."""
        return self._builder.next_producer_id
