"""CreateTopics (19), DeleteTopics (20) and CreatePartitions (37): an error and a message for each topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.cluster.configs import ConfigEntry
from barnabas.protocol.uuids import ZERO_UUID

DEFAULT_COUNT = -1
"""As a partition count or a replication factor: the broker's default."""


@dataclass(slots=True)
class ReplicaAssignment:
    """The node ids that a partition's replicas are to be on, the preferred leader first."""

    partition: int
    replicas: tuple[int, ...]


@dataclass(slots=True)
class NewTopic:
    """`configs`: topic configs by Kafka's names, values as text; null, which Kafka's protocol can say, is refused.

    With `assignments` the two counts must be DEFAULT_COUNT: the assignments say them.
    """

    name: str
    partitions: int = DEFAULT_COUNT
    replication_factor: int = DEFAULT_COUNT
    configs: Mapping[str, str | None] = field(default_factory=dict)
    assignments: Sequence[ReplicaAssignment] = ()


@dataclass(slots=True)
class CreateTopicsRequest:
    """`validate_only`: answer as if, change nothing. `describe`: answer each topic's configs as well."""

    topics: list[NewTopic]
    timeout_ms: int = 60_000
    validate_only: bool = False
    describe: bool = False


@dataclass(slots=True)
class TopicReference:
    """A topic by its name or by its id: ZERO_UUID is no id. Neither, or both, is refused."""

    name: str | None
    topic_id: bytes = ZERO_UUID


@dataclass(slots=True)
class DeleteTopicsRequest:
    """Topics by name, and `references`, which may also be by id."""

    names: list[str]
    timeout_ms: int = 60_000
    references: Sequence[TopicReference] = ()


@dataclass(slots=True)
class NewPartitions:
    """`count`: how many partitions the topic shall have in all. `assignments`: the replicas of each new one."""

    name: str
    count: int
    assignments: Sequence[tuple[int, ...]] | None = None


@dataclass(slots=True)
class CreatePartitionsRequest:
    """`validate_only`: answer as if, change nothing."""

    topics: list[NewPartitions]
    timeout_ms: int = 60_000
    validate_only: bool = False


@dataclass(slots=True)
class TopicResult:
    """What became of one topic. `topic_id` and `partitions` are those of a topic that was created or deleted.

    `message` may be a warning where `error` is NONE (a topic that Apache Kafka 4.x would refuse to open). `name` is ""
    for an id that is no topic's. `replication_factor` and `configs` are of a created topic, where they were asked for.
    """

    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    topic_id: bytes = ZERO_UUID
    partitions: int = -1
    replication_factor: int = -1
    configs: Sequence[ConfigEntry] | None = None


@dataclass(slots=True)
class TopicsResponse:
    """The answer of all three APIs, in the order of the request."""

    topics: list[TopicResult]
