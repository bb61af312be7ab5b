"""Topics, partitions and the cluster as the admin describes them."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.topics.metadata import TopicMetadata
from barnabas.protocol.uuids import uuid_text


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """`leader` is a node id, -1 without one; `error` is NONE if the partition is usable."""

    partition: int
    leader: int
    leader_epoch: int
    error: ErrorCode


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """`topic_id` is the id as text, 22 characters."""

    name: str
    topic_id: str
    partitions: tuple[PartitionDescription, ...]


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """A created topic. `warning` is the broker's message although it succeeded, None without one."""

    name: str
    topic_id: str
    partitions: int
    warning: str | None


@dataclass(frozen=True, slots=True)
class BrokerDescription:
    """A broker's node id and its address for clients."""

    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """A cluster's id and its brokers."""

    cluster_id: str
    brokers: tuple[BrokerDescription, ...]


def describe_topic(topic: TopicMetadata) -> TopicDescription:
    """Return the description of a topic in a metadata response."""
    partitions = tuple(
        PartitionDescription(entry.partition, entry.leader, entry.leader_epoch, entry.error)
        for entry in sorted(topic.partitions, key=lambda entry: entry.partition)
    )
    return TopicDescription(topic.topic_name, uuid_text(topic.topic_id), partitions)
