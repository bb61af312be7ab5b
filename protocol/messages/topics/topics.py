"""CreateTopics (19), DeleteTopics (20) and CreatePartitions (37): an error and a message for each topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.cluster.configs import ConfigEntry
from barnabas.protocol.uuids import ZERO_UUID

DEFAULT_COUNT = -1
"""Partition count or replication factor: the broker's default."""


@dataclass(slots=True)
class ReplicaAssignment:
    """The node ids of a partition's replicas, the preferred leader first."""

    partition: int
    replicas: tuple[int, ...]


@dataclass(slots=True)
class NewTopic:
    """`configs`: topic configs by Kafka's names, values as text; null, which Kafka's protocol allows, is refused.

    With `assignments` the two counts must be DEFAULT_COUNT: the assignments determine them.
    """

    name: str
    partitions: int = DEFAULT_COUNT
    replication_factor: int = DEFAULT_COUNT
    configs: Mapping[str, str | None] = field(default_factory=dict)
    assignments: Sequence[ReplicaAssignment] = ()


@dataclass(slots=True)
class CreateTopicsRequest:
    """`validate_only`: answer without creating anything. `describe`: answer each topic's configs as well.

    `is_quota_strict`, here and below: the client knows THROTTLING_QUOTA_EXCEEDED.
    """

    topics: list[NewTopic]
    timeout_ms: int = 60_000
    validate_only: bool = False
    describe: bool = False
    is_quota_strict: bool = True


@dataclass(slots=True)
class TopicReference:
    """A topic by its name or its id (ZERO_UUID: no id). Neither or both is refused."""

    name: str | None
    topic_id: bytes = ZERO_UUID


@dataclass(slots=True)
class DeleteTopicsRequest:
    """Topics by name, and `references` by name or id."""

    names: list[str]
    timeout_ms: int = 60_000
    references: Sequence[TopicReference] = ()
    is_quota_strict: bool = True


@dataclass(slots=True)
class NewPartitions:
    """`count`: the new total of partitions. `assignments`: the replicas of each new partition."""

    name: str
    count: int
    assignments: Sequence[tuple[int, ...]] | None = None


@dataclass(slots=True)
class CreatePartitionsRequest:
    """`validate_only`: answer without changing anything."""

    topics: list[NewPartitions]
    timeout_ms: int = 60_000
    validate_only: bool = False
    is_quota_strict: bool = True


@dataclass(slots=True)
class TopicResult:
    """One topic's result. `topic_id` and `partitions` are those of a created or deleted topic.

    With `error` NONE, `message` may be a warning (a topic that Apache Kafka 4.x would refuse to open). `name` is None
    where the request had none and the id is unknown. `replication_factor` and `configs` are those of a created topic,
    if requested; `config_error` is why they are left out.
    """

    name: str | None
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    topic_id: bytes = ZERO_UUID
    partitions: int = -1
    replication_factor: int = -1
    configs: Sequence[ConfigEntry] | None = None
    config_error: ErrorCode = ErrorCode.NONE


@dataclass(slots=True)
class TopicsResponse:
    """The answer of all three APIs, in the order of the request."""

    topics: list[TopicResult]
