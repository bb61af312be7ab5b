"""DescribeTopicPartitions (key 75): topics with their partitions, a page at a time."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.messages.topics.metadata import TopicMetadata


@dataclass(slots=True)
class Cursor:
    """The start of a page: a topic and a partition."""

    topic: str
    partition: int


@dataclass(slots=True)
class DescribeTopicPartitionsRequest:
    """`topics` [] means all. A page has at most `partition_limit` partitions and starts at `cursor`."""

    topics: list[str]
    partition_limit: int = 2000
    cursor: Cursor | None = None


@dataclass(slots=True)
class DescribeTopicPartitionsResponse:
    """Topics by name. `next_cursor` None: this was the last page."""

    topics: list[TopicMetadata]
    next_cursor: Cursor | None = None
