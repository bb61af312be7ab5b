"""Which partitions of a share group have state at the share coordinator, and how that changes.

    initializing   the share coordinator was asked to create the state, and has not answered
    initialized    the state exists; only these partitions are assigned to members
    deleting       topics whose state the share coordinator was asked to delete, and has not answered

Each function returns the next value of the group's record. Source: Kafka's GroupMetadataManager
(addInitializingTopicsRecords, initializeShareGroupState, uninitializeShareGroupState,
shareGroupBuildPartitionDeleteRequest, sharePartitionsEligibleForOffsetDeletion, maybeCleanupShareGroupState).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from barnabas.protocol.groups.share_group_values import (
    ShareGroupStatePartitionMetadataValue,
    TopicInfo,
    TopicPartitionsInfo,
)

if TYPE_CHECKING:
    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.protocol.groups.consumer_group_values import Partitions


class StateTopic(NamedTuple):
    """Partitions of a topic, and the topic's name when they were recorded."""

    name: str
    partitions: frozenset[int]


class StatePartitions(NamedTuple):
    """The group's record, by topic id; `deleting` has the topics' names."""

    initializing: Mapping[bytes, StateTopic]
    initialized: Mapping[bytes, StateTopic]
    deleting: Mapping[bytes, str]

    @classmethod
    def of(cls, value: ShareGroupStatePartitionMetadataValue) -> Self:
        """Return the states of a record."""
        initializing, initialized = (
            {each.topic_id: StateTopic(each.topic_name, frozenset(each.partitions)) for each in topics}
            for topics in (value.initializing_topics, value.initialized_topics)
        )
        return cls(initializing, initialized, {each.topic_id: each.topic_name for each in value.deleting_topics})

    def record(self) -> ShareGroupStatePartitionMetadataValue:
        """Return the states as a record's value."""
        initializing, initialized = (
            tuple([TopicPartitionsInfo(each, of.name, tuple(sorted(of.partitions))) for each, of in topics.items()])
            for topics in (self.initializing, self.initialized)
        )
        deleting = tuple([TopicInfo(*each) for each in self.deleting.items()])
        return ShareGroupStatePartitionMetadataValue(initializing, initialized, deleting)


NOTHING: Final = StatePartitions({}, {}, {})
"""Of a group without a record."""

UNKNOWN_NAME: Final = "<UNKNOWN>"
"""Kafka's name for a topic that was deleted meanwhile."""


def missing(
    states: StatePartitions, names: Iterable[str], image: MetadataImage, *, asks_again: bool
) -> dict[bytes, StateTopic]:
    """Return the partitions of the topics `names` whose state is neither initialized nor about to be.

    `asks_again`: the initializing ones count as missing, because their initialization began long ago.
    """
    found = {}
    for name in sorted(names):
        topic = image.topics.get(name)
        if topic is None:
            continue
        has = _numbers(states.initialized, topic.topic_id)
        if not asks_again:
            has |= _numbers(states.initializing, topic.topic_id)
        if len(has) < len(topic.partitions):
            found[topic.topic_id] = StateTopic(name, frozenset(topic.partitions) - has)
    return found


def with_initializing(
    states: StatePartitions, topics: Mapping[bytes, StateTopic], image: MetadataImage
) -> StatePartitions:
    """Return the states once the initialization of `topics` was begun; topics being deleted are taken from there."""
    initializing = _union(states.initializing, topics)
    deleting = {topic_id for topic_id in states.deleting if topic_id not in initializing}
    return StatePartitions(initializing, states.initialized, _named(deleting, image))


def with_initialized(states: StatePartitions, partitions: Partitions, image: MetadataImage) -> StatePartitions:
    """Return the states once these partitions are initialized.

    Partitions that are no longer initializing are left out: their topic, or the topic of the states, was deleted
    meanwhile, and with it their state.
    """
    topics = {}
    for topic_id, numbers in partitions.items():
        if numbers := numbers & _numbers(states.initializing, topic_id):
            topics[topic_id] = StateTopic(_name(topic_id, image), numbers)
    return StatePartitions(
        _without(states.initializing, partitions), _union(states.initialized, topics), _named(states.deleting, image)
    )


def without_initializing(states: StatePartitions, partitions: Partitions, image: MetadataImage) -> StatePartitions:
    """Return the states once the initialization of these partitions failed: the next heartbeat tries again."""
    return StatePartitions(
        _without(states.initializing, partitions), states.initialized, _named(states.deleting, image)
    )


def all_deleting(states: StatePartitions, image: MetadataImage) -> tuple[StatePartitions, dict[bytes, StateTopic]]:
    """Return the states while all of them are being deleted, and which these are.

    Topics of an earlier deletion that failed are among them, with all partitions, unless they no longer exist.
    """
    topics = _union(states.initialized, states.initializing)
    earlier = {}
    for topic_id in states.deleting:
        topic = image.topic_by_id(topic_id)
        if topic is not None:
            earlier[topic_id] = StateTopic(topic.name, frozenset(topic.partitions))
    topics = _union(topics, earlier)
    return StatePartitions({}, {}, {topic_id: topic.name for topic_id, topic in topics.items()}), topics


def topics_deleting(states: StatePartitions, topic_ids: Collection[bytes], image: MetadataImage) -> StatePartitions:
    """Return the states while those of some topics are being deleted."""
    initialized = {topic_id: topic for topic_id, topic in states.initialized.items() if topic_id not in topic_ids}
    return StatePartitions(
        states.initializing, initialized, _named(dict.fromkeys((*states.deleting, *topic_ids)), image)
    )


def topics_deleted(states: StatePartitions, topic_ids: Collection[bytes], image: MetadataImage) -> StatePartitions:
    """Return the states once those of some topics are deleted."""
    deleting = [topic_id for topic_id in states.deleting if topic_id not in topic_ids]
    return StatePartitions(states.initializing, states.initialized, _named(deleting, image))


def without_topics(
    states: StatePartitions, topic_ids: Collection[bytes], image: MetadataImage
) -> StatePartitions | None:
    """Return the states once topics were deleted from the cluster; None if the group had no state of them."""
    kept = [
        {topic_id: topic for topic_id, topic in topics.items() if topic_id not in topic_ids}
        for topics in (states.initializing, states.initialized)
    ]
    deleting = [topic_id for topic_id in states.deleting if topic_id not in topic_ids]
    after = StatePartitions(kept[0], kept[1], _named(deleting, image))
    is_same = len(kept[0]) == len(states.initializing) and len(kept[1]) == len(states.initialized)
    return None if is_same and len(deleting) == len(states.deleting) else after


def partitions_of(topics: Mapping[bytes, StateTopic]) -> dict[bytes, frozenset[int]]:
    """Return the partitions by topic id, without names."""
    return {topic_id: topic.partitions for topic_id, topic in topics.items()}


def _numbers(topics: Mapping[bytes, StateTopic], topic_id: bytes) -> frozenset[int]:
    topic = topics.get(topic_id)
    return frozenset() if topic is None else topic.partitions


def _union(first: Mapping[bytes, StateTopic], second: Mapping[bytes, StateTopic]) -> dict[bytes, StateTopic]:
    """Return the partitions of both, with the names of `second`."""
    result = dict(first)
    for topic_id, topic in second.items():
        result[topic_id] = StateTopic(topic.name, topic.partitions | _numbers(first, topic_id))
    return result


def _without(topics: Mapping[bytes, StateTopic], partitions: Partitions) -> dict[bytes, StateTopic]:
    left = {}
    for topic_id, topic in topics.items():
        numbers = topic.partitions - partitions.get(topic_id, frozenset())
        if numbers:
            left[topic_id] = StateTopic(topic.name, numbers)
    return left


def _name(topic_id: bytes, image: MetadataImage) -> str:
    return image.names.get(topic_id, UNKNOWN_NAME)


def _named(topic_ids: Iterable[bytes], image: MetadataImage) -> dict[bytes, str]:
    return {topic_id: _name(topic_id, image) for topic_id in topic_ids}
