"""The topology of a Kafka Streams application, as its members send it and as the group's record keeps it (KIP-1071).

A topology has subtopologies. A subtopology is divided into tasks, one for each partition of its source topics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

Tasks: TypeAlias = Mapping[str, frozenset[int]]
"""Tasks: partitions by subtopology id."""


class KeyValue(NamedTuple):
    """A config of a topic, or a tag of a client."""

    key: str
    value: str


class Endpoint(NamedTuple):
    """Where a member answers interactive queries."""

    host: str
    port: int


class TopicInfo(NamedTuple):
    """An internal topic. `partitions`, `replication_factor`: 0 if the broker decides."""

    name: str
    partitions: int
    replication_factor: int
    configs: Sequence[KeyValue]


class CopartitionGroup(NamedTuple):
    """Source topics with equal numbers of partitions: positions in the lists of their subtopology."""

    source_topics: Sequence[int]
    source_topic_regex: Sequence[int]
    repartition_source_topics: Sequence[int]


class Subtopology(NamedTuple):
    """A part of the topology whose tasks are independent of each other."""

    subtopology_id: str
    source_topics: Sequence[str]
    source_topic_regex: Sequence[str]
    changelog_topics: Sequence[TopicInfo]
    repartition_sink_topics: Sequence[str]
    repartition_source_topics: Sequence[TopicInfo]
    copartition_groups: Sequence[CopartitionGroup]


class Topology(NamedTuple):
    """`epoch` is chosen by the application."""

    epoch: int
    subtopologies: Sequence[Subtopology]
