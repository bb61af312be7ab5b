"""The topology of a group with what is looked up in it. Source: Kafka's StreamsTopology."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.protocol.messages.groups.streams_topology import Subtopology, Topology


class StreamsTopology:
    """A topology. Two of them are equal if epochs and subtopologies are, whatever the order of the subtopologies."""

    __slots__ = ("epoch", "required_topics", "subtopologies", "subtopology_of_source", "value")

    def __init__(self, value: Topology) -> None:
        self.value = value
        self.epoch = value.epoch
        self.subtopologies: Mapping[str, Subtopology] = {each.subtopology_id: each for each in value.subtopologies}
        self.subtopology_of_source: dict[str, str] = {}
        """The subtopology that reads a source or repartition topic."""
        required: set[str] = set()
        for each in self.subtopologies.values():
            sources = source_topics(each)
            self.subtopology_of_source.update(dict.fromkeys(sources, each.subtopology_id))
            required.update(sources, (topic.name for topic in each.changelog_topics))
        self.required_topics = frozenset(required)
        """All topics that must exist before the application runs: sources, and the internal topics it reads."""

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, StreamsTopology)
            and self.epoch == other.epoch
            and self.subtopologies == other.subtopologies
        )

    __hash__ = None  # type: ignore[assignment]


def source_topics(subtopology: Subtopology) -> list[str]:
    """Return the topics that a subtopology reads, repartition topics last."""
    return [*subtopology.source_topics, *(topic.name for topic in subtopology.repartition_source_topics)]
