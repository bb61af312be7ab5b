"""Application of metadata records to an image. A builder copies what its records change once and shares the rest.

A record that contradicts earlier ones (a partition of an unknown topic, a topic twice) raises ReplayError: Kafka stops
on it as well, and going on would lose data silently.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.broker.metadata.errors import ReplayError
from barnabas.broker.metadata.image import ConfigScope, MetadataImage, TopicImage, topic_scope
from barnabas.broker.metadata.mirrors.image import MirrorsBuilder, MirrorsImage, is_mirror_record
from barnabas.broker.metadata.security.builder import SecurityBuilder
from barnabas.protocol.metadata.levels import METADATA_VERSION
from barnabas.protocol.metadata.partition_state import PartitionDelta, PartitionState
from barnabas.protocol.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ClearElrRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnknownRecord,
)
from barnabas.protocol.uuids import uuid_text


class ImageBuilder:
    """Applies records to a copy of `image`; `build`, called once, returns the new image."""

    def __init__(self, image: MetadataImage) -> None:
        self._end_offset = image.end_offset
        self._topics = dict(image.topics)
        self._names = dict(image.names)
        self._configs = dict(image.configs)
        self._features = dict(image.features)
        self.highest_levels = dict(image.features)
        """The highest level of each feature so far, which a Kafka that replays the same records must support."""
        self._carried = image.carried.builder()
        self._next_producer_id = image.next_producer_id
        self._security = SecurityBuilder(image.security)
        self._mirrors = MirrorsBuilder(image.mirrors)
        self._changed_partitions: dict[str, dict[int, PartitionState]] = {}
        self._changed_scopes: dict[ConfigScope, dict[str, str]] = {}

    def apply(self, record: MetadataRecord) -> None:
        """Apply one record. The caller handles the records of transactions. Raises ReplayError."""
        match record:
            case PartitionRecord():
                self._partitions_of(record.topic_id, record)[record.partition] = record.state
            case PartitionChangeRecord():
                self._change_partition(record)
            case TopicRecord():
                self._add_topic(record)
            case ConfigRecord():
                self._change_config(record)
            case RemoveTopicRecord():
                self._remove_topic(record)
            case FeatureLevelRecord():
                self._change_feature(record)
            case ProducerIdsRecord():
                self._next_producer_id = record.next_producer_id
            case UnknownRecord():
                self._carried.apply(record)
            case ClearElrRecord():
                self._clear_eligible_leaders(record)
            case BeginTransactionRecord() | EndTransactionRecord() | AbortTransactionRecord():
                raise AssertionError(f"{type(record).__name__} is not applied to an image")
            case _:
                self._security.apply(record)

    def move_to(self, end_offset: int) -> None:
        """Set the offset after the last record."""
        self._end_offset = end_offset

    @property
    def level(self) -> int | None:
        """`metadata.version` so far."""
        return self._features.get(METADATA_VERSION)

    def topic(self, name: str) -> TopicImage | None:
        """Return a topic as it is so far. Its partitions change with later records."""
        topic = self._topics.get(name)
        partitions = self._changed_partitions.get(name)
        if topic is None or partitions is None:
            return topic
        return TopicImage(name, topic.topic_id, partitions)

    def topic_by_id(self, topic_id: bytes) -> TopicImage | None:
        """Return the topic with that id as it is so far."""
        name = self._names.get(topic_id)
        return None if name is None else self.topic(name)

    def configs(self, scope: ConfigScope) -> Mapping[str, str]:
        """Return the configs of a scope as they are so far. They change with later records."""
        changed = self._changed_scopes.get(scope)
        return self._configs.get(scope, {}) if changed is None else changed

    @property
    def mirrors(self) -> MirrorsImage:
        """The mirrors so far. They change with later records."""
        return self._mirrors.current

    @property
    def next_producer_id(self) -> int:
        """The first id of the next block of producer ids so far."""
        return self._next_producer_id

    def build(self) -> MetadataImage:
        """Return the image after all records. Do not use the builder afterwards: the image owns its maps."""
        for name, partitions in self._changed_partitions.items():
            topic = self._topics[name]
            self._topics[name] = TopicImage(name, topic.topic_id, partitions)
        for scope, values in self._changed_scopes.items():
            if values:
                self._configs[scope] = values
            else:
                self._configs.pop(scope, None)
        return MetadataImage(
            end_offset=self._end_offset,
            topics=self._topics,
            names=self._names,
            configs=self._configs,
            features=self._features,
            next_producer_id=self._next_producer_id,
            security=self._security.build(),
            carried=self._carried.build(),
            mirrors=self._mirrors.build(),
        )

    def _add_topic(self, record: TopicRecord) -> None:
        if record.name in self._topics or record.topic_id in self._names:
            raise ReplayError(f"topic {record.name} with id {uuid_text(record.topic_id)} is created twice")
        self._topics[record.name] = TopicImage(record.name, record.topic_id, {})
        self._names[record.topic_id] = record.name

    def _remove_topic(self, record: RemoveTopicRecord) -> None:
        name = self._name_of(record.topic_id, record)
        del self._topics[name], self._names[record.topic_id]
        self._changed_partitions.pop(name, None)
        self._configs.pop(topic_scope(name), None)
        self._changed_scopes.pop(topic_scope(name), None)

    def _change_partition(self, record: PartitionChangeRecord) -> None:
        partitions = self._partitions_of(record.topic_id, record)
        state = partitions.get(record.partition)
        if state is None:
            name = self._names[record.topic_id]
            raise ReplayError(f"a change of partition {name}-{record.partition}, which does not exist")
        partitions[record.partition] = state.changed_by(record.delta)

    def _clear_eligible_leaders(self, record: ClearElrRecord) -> None:
        if record.topic and record.topic not in self._topics:
            raise ReplayError(f"eligible leaders of topic {record.topic} are cleared, which does not exist")
        for name in (record.topic,) if record.topic else tuple(self._topics):
            partitions = self._partitions_of(self._topics[name].topic_id, record)
            for number, state in partitions.items():
                if state.eligible_leaders or state.last_known_eligible:
                    partitions[number] = state.changed_by(PartitionDelta(eligible_leaders=(), last_known_eligible=()))

    def _change_config(self, record: ConfigRecord) -> None:
        if is_mirror_record(record):
            self._mirrors.apply(record)
            return
        scope = (record.resource_type, record.resource_name)
        values = self._changed_scopes.get(scope)
        if values is None:
            values = self._changed_scopes[scope] = dict(self._configs.get(scope, {}))
        if record.value is None:
            values.pop(record.name, None)
        else:
            values[record.name] = record.value

    def _change_feature(self, record: FeatureLevelRecord) -> None:
        self.highest_levels[record.name] = max(record.level, self.highest_levels.get(record.name, 0))
        if record.level:
            self._features[record.name] = record.level
        else:
            self._features.pop(record.name, None)

    def _partitions_of(self, topic_id: bytes, record: MetadataRecord) -> dict[int, PartitionState]:
        name = self._name_of(topic_id, record)
        partitions = self._changed_partitions.get(name)
        if partitions is None:
            partitions = self._changed_partitions[name] = dict(self._topics[name].partitions)
        return partitions

    def _name_of(self, topic_id: bytes, record: MetadataRecord) -> str:
        name = self._names.get(topic_id)
        if name is None:
            raise ReplayError(f"{type(record).__name__} names topic id {uuid_text(topic_id)}, which does not exist")
        return name
