"""The topology of a Kafka Streams application, as its members send it and as the group's record keeps it (KIP-1071).

A topology has subtopologies. A subtopology is divided into tasks, one for each partition of its source topics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, TypeAlias

from barnabas.protocol.wire.records import RecordValue
from barnabas.protocol.wire.structures import Struct
from barnabas.protocol.wire.types import Int16, Int32, Int64, Named, String, UInt16

Tasks: TypeAlias = Mapping[str, frozenset[int]]
"""Tasks: partitions by subtopology id."""


class TaskIds(Struct, frozen=True, kw_only=False):
    """The tasks of one subtopology in a message or a record."""

    subtopology_id: String
    partitions: tuple[Int32, ...]


class TaskOffset(Struct):
    """How far a task is, or its end."""

    subtopology_id: String
    partition: Int32
    offset: Int64


class KeyValue(Struct, frozen=True):
    """A config of a topic, or a tag of a client."""

    key: String
    value: String


class Endpoint(Struct, frozen=True):
    """Where a member answers interactive queries."""

    host: String
    port: UInt16


class TopicInfo(Struct, frozen=True):
    """An internal topic. `partitions`, `replication_factor`: 0 if the broker decides."""

    name: String
    partitions: Int32 = 0
    replication_factor: Int16 = 0
    configs: Annotated[tuple[KeyValue, ...], Named("topicConfigs")] = ()


class CopartitionGroup(Struct, frozen=True):
    """Source topics with equal numbers of partitions: positions in the lists of their subtopology."""

    source_topics: tuple[Int16, ...] = ()
    source_topic_regex: tuple[Int16, ...] = ()
    repartition_source_topics: tuple[Int16, ...] = ()


class Subtopology(Struct, frozen=True):
    """A part of the topology whose tasks are independent of each other."""

    subtopology_id: String
    source_topics: tuple[String, ...] = ()
    source_topic_regex: tuple[String, ...] = ()
    changelog_topics: Annotated[tuple[TopicInfo, ...], Named("stateChangelogTopics")] = ()
    repartition_sink_topics: tuple[String, ...] = ()
    repartition_source_topics: tuple[TopicInfo, ...] = ()
    copartition_groups: tuple[CopartitionGroup, ...] = ()


class Topology(RecordValue, flexible=0, frozen=True):
    """`epoch` is chosen by the application."""

    epoch: Int32
    subtopologies: tuple[Subtopology, ...]


def by_key(pairs: Iterable[KeyValue]) -> tuple[KeyValue, ...]:
    """Return configs or tags in the order of their keys."""
    return tuple(sorted(pairs, key=lambda pair: (pair.key, pair.value)))


def tasks_of(rows: Iterable[TaskIds]) -> dict[str, frozenset[int]]:
    """Return the tasks of a message; of several rows of one subtopology the last counts."""
    return {each.subtopology_id: frozenset(each.partitions) for each in rows}


def task_ids(tasks: Tasks) -> tuple[TaskIds, ...]:
    """Return tasks for a message or a record, in the order of subtopologies and partitions."""
    return tuple([TaskIds(each, tuple(sorted(tasks[each]))) for each in sorted(tasks)])
