"""DescribeTopicPartitions (key 75): topics by name, with at most 2,000 partitions a page.

All topics, or the listed ones. A page begins at the request's cursor; if it ends before the last partition, the
response's cursor is where the next page begins. INVALID_REQUEST for a cursor whose topic is not among the listed ones
or whose partition is negative. Per listed topic: TOPIC_AUTHORIZATION_FAILED if the client may not DESCRIBE it,
after the other rows (unlisted, it is left out); UNKNOWN_TOPIC_OR_PARTITION, or INVALID_TOPIC_EXCEPTION for an illegal
name. Creates no topic. Source: Kafka's DescribeTopicPartitionsRequestHandler, KRaftMetadataCache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.handlers.authorization import denial, is_allowed, topic_operations
from barnabas.broker.handlers.topics.described_topics import describe_partition, unknown_topic
from barnabas.broker.handlers.turns import Turns, in_turns
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.resources import Operation, ResourceType
from barnabas.protocol.messages.topics.describe_topic_partitions import (
    Cursor,
    DescribedPartition,
    DescribedTopic,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from barnabas.protocol.topic_name import is_internal

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from barnabas.broker.metadata.image import TopicImage
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.network.session import Session
    from barnabas.broker.partitions.registry import PartitionRegistry

PARTITION_LIMIT: Final = 2000
"""Maximum of partitions per page: the default of Kafka's max.request.partition.size.limit."""


class DescribeTopicPartitionsHandler:
    """Serves DescribeTopicPartitions."""

    def __init__(self, store: MetadataView, partitions: PartitionRegistry) -> None:
        self._store = store
        self._partitions = partitions

    def __call__(
        self, session: Session, request: DescribeTopicPartitionsRequest
    ) -> DescribeTopicPartitionsResponse | Coroutine[Any, Any, DescribeTopicPartitionsResponse]:
        """Answer one DescribeTopicPartitions request as the module docstring specifies; of many topics in turns."""
        return in_turns(self._page(session, request))

    async def _page(self, session: Session, request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
        turns = Turns()
        topics = self._store.image.topics
        cursor, asked = request.cursor, request.names
        first = "" if cursor is None else cursor.topic
        names = sorted({name for name in asked or topics if name >= first})
        if cursor is not None:
            _ensure_possible(cursor, asked)
        names, denied = await _split(turns, session, names, named=bool(asked))
        room = max(min(PARTITION_LIMIT, request.partition_limit), 1)
        described: list[DescribedTopic] = []
        for name in names:
            if turns.is_over:
                await turns.next()
            if room == 0:
                return DescribeTopicPartitionsResponse(
                    topics=[*described, *denied], next_cursor=Cursor(topic=name, partition=0)
                )
            topic = topics.get(name)
            if topic is None:
                described.append(self._unknown(session, name))
                continue
            start = cursor.partition if cursor is not None and name == cursor.topic else 0
            numbers = [number for number in sorted(topic.partitions) if number >= start]
            described.append(self._describe(session, topic, numbers[:room]))
            if len(numbers) > room:
                return DescribeTopicPartitionsResponse(
                    topics=[*described, *denied], next_cursor=Cursor(topic=name, partition=numbers[room])
                )
            room -= len(numbers)
        return DescribeTopicPartitionsResponse(topics=[*described, *denied])

    def _unknown(self, session: Session, name: str) -> DescribedTopic:
        unknown = unknown_topic(name)
        return DescribedTopic(
            error=unknown.error,
            name=name,
            is_internal=unknown.is_internal,
            authorized_operations=topic_operations(session, name),
        )

    def _describe(self, session: Session, topic: TopicImage, numbers: list[int]) -> DescribedTopic:
        return DescribedTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=is_internal(topic.name),
            partitions=[self._partition(topic, number) for number in numbers],
            authorized_operations=topic_operations(session, topic.name),
        )

    def _partition(self, topic: TopicImage, number: int) -> DescribedPartition:
        state, node_id = topic.partitions[number], self._store.node_id
        described = describe_partition(self._partitions, topic.name, number, state, node_id=node_id)
        return DescribedPartition(
            error=described.error,
            partition=number,
            leader=described.leader,
            leader_epoch=described.leader_epoch,
            replicas=described.replicas,
            isr=described.isr,
            offline=described.offline,
        )


async def _split(
    turns: Turns, session: Session, names: list[str], *, named: bool
) -> tuple[list[str], list[DescribedTopic]]:
    """Return the topics that the client may describe, and refusals of the other ones if it named them."""
    if session.access is None:
        return names, []
    error = denial(ResourceType.TOPIC).code
    allowed, denied = [], []
    for name in names:
        if is_allowed(session, Operation.DESCRIBE, ResourceType.TOPIC, name, ApiKey.DESCRIBE_TOPIC_PARTITIONS):
            allowed.append(name)
        elif named:
            denied.append(DescribedTopic(name=name, error=error))
        if turns.is_over:
            await turns.next()
    return allowed, denied


def _ensure_possible(cursor: Cursor, asked: Sequence[str]) -> None:
    if asked and cursor.topic not in asked:
        message = f"DescribeTopicPartitionsRequest topic list should contain the cursor topic: {cursor.topic}"
        raise BrokerError(ErrorCode.INVALID_REQUEST, message)
    if cursor.partition < 0:
        message = f"DescribeTopicPartitionsRequest cursor partition must be valid: {cursor.partition}"
        raise BrokerError(ErrorCode.INVALID_REQUEST, message)
