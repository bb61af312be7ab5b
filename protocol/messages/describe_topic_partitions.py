"""DescribeTopicPartitions (key 75): topics with their partitions, a page at a time."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.authorized_operations import TOPIC_OPERATIONS
from barnabas.protocol.uuids import ZERO_UUID


@dataclass(slots=True)
class Cursor:
    """Where a page begins: a topic, and the first of its partitions."""

    topic: str
    partition: int


@dataclass(slots=True)
class DescribeTopicPartitionsRequest:
    """`topics` [] asks for all. A page has at most `partition_limit` partitions and begins at `cursor`."""

    topics: list[str]
    partition_limit: int = 2000
    cursor: Cursor | None = None


@dataclass(slots=True)
class PartitionDescription:
    """`leader` is a node id, -1 without one; `offline` are replicas that cannot be reached."""

    partition: int
    error: ErrorCode
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...] = ()


@dataclass(slots=True)
class TopicDescription:
    """`topic_id` is zeros where the topic is unknown."""

    name: str
    error: ErrorCode = ErrorCode.NONE
    topic_id: bytes = ZERO_UUID
    is_internal: bool = False
    partitions: tuple[PartitionDescription, ...] = ()
    authorized_operations: int = TOPIC_OPERATIONS


@dataclass(slots=True)
class DescribeTopicPartitionsResponse:
    """By name. `next_cursor` None: this was the last page."""

    topics: list[TopicDescription]
    next_cursor: Cursor | None = None
