"""MetadataImage: the state of the metadata log as one immutable value.

The writer replaces the image as a whole once its records are durable, so any thread may keep one and read it without a
lock. Names are Kafka's, except that config scopes are (resource type, resource name).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.broker.metadata.carried import CarriedRecords
from barnabas.broker.metadata.mirrors.image import UNREADABLE_MIRROR, MirrorsImage
from barnabas.broker.metadata.security.image import SecurityImage
from barnabas.protocol.metadata.levels import METADATA_VERSION
from barnabas.protocol.metadata.partition_state import PartitionState
from barnabas.protocol.metadata.records import BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE

if TYPE_CHECKING:
    from barnabas.protocol.mirrors.topic import TopicMirror

ConfigScope = tuple[int, str]
"""Resource type (2 topic, 4 broker, 32 group) and name (topic, node id as text, or "" for all brokers, group id)."""

ALL_BROKERS: ConfigScope = (BROKER_RESOURCE, "")


def topic_scope(topic: str) -> ConfigScope:
    """Return the scope of a topic's configs."""
    return (TOPIC_RESOURCE, topic)


def broker_scope(node_id: int) -> ConfigScope:
    """Return the scope of one broker's configs."""
    return (BROKER_RESOURCE, str(node_id))


def client_metrics_scope(name: str) -> ConfigScope:
    """Return the scope of a subscription of client metrics."""
    return (CLIENT_METRICS_RESOURCE, name)


def group_scope(group_id: str) -> ConfigScope:
    """Return the scope of a group's configs."""
    return (GROUP_RESOURCE, group_id)


_EMPTY: Final[Mapping[Any, Any]] = MappingProxyType({})


class TopicImage(NamedTuple):
    """A topic: its id and its partitions by number."""

    name: str
    topic_id: bytes
    partitions: Mapping[int, PartitionState]


class MetadataImage(NamedTuple):
    """The state after all records below `end_offset`.

    `carried` are the records kept for Kafka and not served here (registrations, migration state, ...).
    """

    end_offset: int = 0
    topics: Mapping[str, TopicImage] = _EMPTY
    names: Mapping[bytes, str] = _EMPTY
    configs: Mapping[ConfigScope, Mapping[str, str]] = _EMPTY
    features: Mapping[str, int] = _EMPTY
    next_producer_id: int = 0
    security: SecurityImage = SecurityImage()
    carried: CarriedRecords = CarriedRecords()
    mirrors: MirrorsImage = MirrorsImage()

    @property
    def level(self) -> int | None:
        """`metadata.version`, or None in a log without one."""
        return self.features.get(METADATA_VERSION)

    def topic_by_id(self, topic_id: bytes) -> TopicImage | None:
        """Return the topic with that id."""
        name = self.names.get(topic_id)
        return None if name is None else self.topics[name]

    def partition(self, topic: str, partition: int) -> PartitionState | None:
        """Return one partition's state."""
        found = self.topics.get(topic)
        return None if found is None else found.partitions.get(partition)

    def mirror_of(self, topic: str) -> TopicMirror | None:
        """Return the mirror record of an existing topic; None for one that was created without a mirror."""
        found = self.mirrors.topics.get(topic)
        if found is None:
            return None
        existing = self.topics.get(topic)
        if existing is None or (found.topic_id != existing.topic_id and found.mirror != UNREADABLE_MIRROR):
            return None
        return found

    def topic_configs(self, topic: str) -> Mapping[str, str]:
        """Return the configs set on the topic itself: names to texts."""
        return self.configs.get(topic_scope(topic), {})

    def group_configs(self, group_id: str) -> Mapping[str, str]:
        """Return the configs set on the group itself."""
        return self.configs.get(group_scope(group_id), {})

    def client_metrics_configs(self, name: str) -> Mapping[str, str]:
        """Return the configs of a subscription of client metrics."""
        return self.configs.get(client_metrics_scope(name), {})

    def default_broker_configs(self) -> Mapping[str, str]:
        """Return the configs set for all brokers."""
        return self.configs.get(ALL_BROKERS, {})

    def broker_configs(self, node_id: int) -> Mapping[str, str]:
        """Return the configs set for that broker alone."""
        return self.configs.get(broker_scope(node_id), {})

    def partition_count(self) -> int:
        """Return the number of partitions of all topics."""
        return sum(len(topic.partitions) for topic in self.topics.values())
