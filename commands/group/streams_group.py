"""A streams group's members, their tasks, and the partitions that these read: for `group describe`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.clients.errors import RefusedError, reason_of
from barnabas.clients.network.cluster import Cluster
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups.find_coordinator import GROUP_KEY
from barnabas.protocol.messages.groups.streams_group_describe import (
    DescribedTopology,
    StreamsGroupDescribeRequest,
)
from barnabas.protocol.messages.groups.streams_topology import tasks_of
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.clients.config import ClientConfig
    from barnabas.protocol.messages.groups.streams_topology import Tasks

STREAMS_TYPE: Final = "Streams"
"""Type of a streams group in lists."""


class StreamsGroupFacts(NamedTuple):
    """`members` as JSON. `owners`: the member that reads a partition, as (member id, `client@host`)."""

    members: list[dict[str, Any]]
    owners: Mapping[TopicPartition, tuple[str, str]]


async def streams_group_facts(config: ClientConfig, group: str) -> StreamsGroupFacts:
    """Describe the members. Raises RefusedError, ClientError."""
    kafka = Cluster(config)
    try:
        coordinator = await kafka.coordinator(GROUP_KEY, group)
        answer = await coordinator.request(StreamsGroupDescribeRequest(group_ids=(group,)))
        (found,) = answer.groups
        if found.error is not ErrorCode.NONE:
            raise RefusedError(found.error, found.message or f"group {group!r}: {reason_of(found.error)}")
        sources = _sources(found.topology)
        metadata = await kafka.load(sorted({topic for topics in sources.values() for topic in topics}))
    finally:
        await kafka.close()
    existing = {
        TopicPartition(topic.topic_name, each.partition) for topic in metadata.topics for each in topic.partitions
    }
    members = []
    owners: dict[TopicPartition, tuple[str, str]] = {}
    for each in found.members:
        client = f"{each.client_id}@{each.client_host.removeprefix('/')}"
        active = tasks_of(each.assignment.active)
        partitions = [one for one in _read_by(sources, active) if one in existing]
        for partition in partitions:
            owners[partition] = each.member_id, client
        members.append(
            {
                "member_id": each.member_id,
                "instance_id": each.instance_id,
                "client_id": each.client_id,
                "host": each.client_host.removeprefix("/"),
                "process_id": each.process_id,
                "partitions": len(partitions),
                "active_tasks": _names(active),
                "standby_tasks": _names(tasks_of(each.assignment.standby)),
                "warmup_tasks": _names(tasks_of(each.assignment.warmup)),
            }
        )
    return StreamsGroupFacts(members, owners)


def _sources(topology: DescribedTopology | None) -> Mapping[str, Sequence[str]]:
    """Return the topics that the tasks of each subtopology read."""
    return {
        each.subtopology_id: [*each.source_topics, *(topic.name for topic in each.repartition_source_topics)]
        for each in (() if topology is None else topology.subtopologies or ())
    }


def _read_by(sources: Mapping[str, Sequence[str]], tasks: Tasks) -> list[TopicPartition]:
    """Return the partitions that tasks read, with those that a topic with fewer partitions does not have."""
    return [
        TopicPartition(topic, number)
        for subtopology, numbers in tasks.items()
        for topic in sources.get(subtopology, ())
        for number in sorted(numbers)
    ]


def _names(tasks: Tasks) -> list[str]:
    """Return tasks by Kafka's names: subtopology and partition."""
    return [f"{subtopology}_{number}" for subtopology in sorted(tasks) for number in sorted(tasks[subtopology])]
