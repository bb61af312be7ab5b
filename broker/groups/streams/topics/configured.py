"""A topology with the tasks and internal topics that the topics of the cluster give it.

A topology is ready once all its topics exist with the right partition counts. Until then its group has no tasks, and
its members are told what is missing; internal topics that are missing are created (`missing`). Source: Kafka's
InternalTopicManager.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.groups.streams.topics.partition_counts import (
    PartitionCounts,
    TopicsNotReadyError,
    incorrectly_partitioned,
)
from barnabas.protocol.messages.groups.streams_group_heartbeat import GroupStatus, StatusCode
from barnabas.protocol.messages.topics.topics import DEFAULT_COUNT, NewTopic, config_rows

if TYPE_CHECKING:
    from barnabas.broker.groups.streams.topics.topology import StreamsTopology
    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.protocol.messages.groups.streams_topology import Subtopology, TopicInfo

_MAX_SHOWN: Final = 3
"""Names of topics in a status; the others are counted."""


class ConfiguredSubtopology(NamedTuple):
    """A subtopology with its number of tasks; its internal topics have their partition counts."""

    tasks: int
    source_topics: Sequence[str]
    repartition_source_topics: Sequence[TopicInfo]
    repartition_sink_topics: Sequence[str]
    changelog_topics: Sequence[TopicInfo]


class ConfiguredTopology(NamedTuple):
    """`subtopologies` by id, in that order; empty if the partition counts could not be decided.

    status    why it is not ready, None if it is
    missing   internal topics to be created
    """

    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology]
    status: GroupStatus | None
    missing: Sequence[NewTopic] = ()

    @property
    def is_ready(self) -> bool:
        """Whether all topics exist as the topology needs them."""
        return self.status is None


def configure(topology: StreamsTopology, image: MetadataImage) -> ConfiguredTopology:
    """Return the topology as the topics of `image` allow it. Raises BrokerError STREAMS_INVALID_TOPOLOGY."""
    existing = {name: len(image.topics[name].partitions) for name in topology.required_topics if name in image.topics}
    try:
        _ensure_sources(topology, existing)
        counts = PartitionCounts(topology, existing)
        counts.decide()
        subtopologies = {
            each: _configured(topology.subtopologies[each], counts) for each in sorted(topology.subtopologies)
        }
        missing = _missing(subtopologies.values(), existing)
    except TopicsNotReadyError as error:
        return ConfiguredTopology(topology.epoch, {}, GroupStatus(code=error.status, detail=error.message))
    status = None
    if missing:
        names = [topic.name for topic in missing]
        status = GroupStatus(
            code=StatusCode.MISSING_INTERNAL_TOPICS, detail=f"Internal topics are missing: {_shown(names)}"
        )
    return ConfiguredTopology(topology.epoch, subtopologies, status, missing)


def _ensure_sources(topology: StreamsTopology, existing: Mapping[str, int]) -> None:
    missing = {
        topic for each in topology.subtopologies.values() for topic in each.source_topics if topic not in existing
    }
    if missing:
        raise TopicsNotReadyError(
            StatusCode.MISSING_SOURCE_TOPICS, f"Source topics {_shown(sorted(missing))} are missing."
        )


def _configured(subtopology: Subtopology, counts: PartitionCounts) -> ConfiguredSubtopology:
    def with_count(topic: TopicInfo) -> TopicInfo:
        return topic.replaced(partitions=topic.partitions or counts.decided[topic.name])

    return ConfiguredSubtopology(
        counts.tasks_of(subtopology),
        subtopology.source_topics,
        tuple(map(with_count, subtopology.repartition_source_topics)),
        subtopology.repartition_sink_topics,
        tuple(map(with_count, subtopology.changelog_topics)),
    )


def _missing(subtopologies: Collection[ConfiguredSubtopology], existing: Mapping[str, int]) -> list[NewTopic]:
    """Return the internal topics to create. Raises TopicsNotReadyError for one with another partition count."""
    expected: dict[str, TopicInfo] = {}
    for each in subtopologies:
        expected.update((topic.name, topic) for topic in (*each.repartition_source_topics, *each.changelog_topics))
    for name in sorted(expected.keys() & existing.keys()):
        if existing[name] != expected[name].partitions:
            raise incorrectly_partitioned(
                f"Existing topic {name} has different number of partitions: expected {expected[name].partitions}, "
                f"found {existing[name]}"
            )
    return [_new_topic(expected[name]) for name in sorted(expected.keys() - existing.keys())]


def _new_topic(topic: TopicInfo) -> NewTopic:
    return NewTopic(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor or DEFAULT_COUNT,
        configs=config_rows({each.key: each.value for each in topic.configs}),
    )


def _shown(names: Sequence[str]) -> str:
    more = len(names) - _MAX_SHOWN
    return ", ".join(names[:_MAX_SHOWN]) + (f" and {more} additional topics" if more > 0 else "")
