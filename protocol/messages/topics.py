"""CreateTopics (19), DeleteTopics (20) and CreatePartitions (37): an error and a message for each topic."""

from __future__ import annotations

from dataclasses import dataclass, field

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.uuids import ZERO_UUID

DEFAULT_COUNT = -1
"""As a partition count or a replication factor: the broker's default."""


@dataclass(slots=True)
class NewTopic:
    """`configs`: topic configs by Kafka's names, values as text."""

    name: str
    partitions: int = DEFAULT_COUNT
    replication_factor: int = DEFAULT_COUNT
    configs: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class CreateTopicsRequest:
    """`validate_only`: answer as if, change nothing."""

    topics: list[NewTopic]
    timeout_ms: int = 60_000
    validate_only: bool = False


@dataclass(slots=True)
class DeleteTopicsRequest:
    """Topics by name."""

    names: list[str]
    timeout_ms: int = 60_000


@dataclass(slots=True)
class NewPartitions:
    """`count`: how many partitions the topic shall have in all."""

    name: str
    count: int


@dataclass(slots=True)
class CreatePartitionsRequest:
    """`validate_only`: answer as if, change nothing."""

    topics: list[NewPartitions]
    timeout_ms: int = 60_000
    validate_only: bool = False


@dataclass(slots=True)
class TopicResult:
    """What became of one topic. `topic_id` and `partitions` are those of a topic that was created or deleted.

    `message` may be a warning where `error` is NONE (a topic that Apache Kafka 4.x would refuse to open).
    """

    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    topic_id: bytes = ZERO_UUID
    partitions: int = -1


@dataclass(slots=True)
class TopicsResponse:
    """The answer of all three APIs, in the order of the request."""

    topics: list[TopicResult]
