"""Which partitions each member's state covers, for interactive queries. Source: Kafka's EndpointToPartitionsManager."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.protocol.messages.groups.streams_group_heartbeat import EndpointPartitions, TopicPartitions

if TYPE_CHECKING:
    from barnabas.broker.groups.streams.member import StreamsGroupMember
    from barnabas.broker.groups.streams.topics.configured import ConfiguredTopology
    from barnabas.broker.metadata.image import MetadataImage


def endpoints_of(
    members: Iterable[StreamsGroupMember], topology: ConfiguredTopology, image: MetadataImage
) -> list[EndpointPartitions]:
    """Return an entry for each member that answers queries."""
    return [
        EndpointPartitions(
            endpoint=member.user_endpoint,
            active=_partitions(member.assigned.active, topology, image),
            standby=_partitions(member.assigned.standby, topology, image),
        )
        for member in members
        if member.user_endpoint is not None
    ]


def _partitions(
    tasks: Mapping[str, Iterable[int]], topology: ConfiguredTopology, image: MetadataImage
) -> list[TopicPartitions]:
    """Return the partitions of the source topics of tasks. A topic with fewer partitions than tasks has no others."""
    found = {}
    for subtopology_id, numbers in tasks.items():
        subtopology = topology.subtopologies.get(subtopology_id)
        if subtopology is None:
            continue
        names = [*subtopology.source_topics, *(topic.name for topic in subtopology.repartition_source_topics)]
        for name in names:
            topic = image.topics.get(name)
            if topic is not None:
                found[name] = [number for number in sorted(numbers) if number in topic.partitions]
    return [TopicPartitions(topic=name, partitions=numbers) for name, numbers in found.items()]
