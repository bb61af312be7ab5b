"""Offsets by timestamp from the leader of each partition, for the consumer and the admin."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import RefusedError, UnknownTopicError
from barnabas.clients.network.cluster import NO_LEADER, Cluster
from barnabas.clients.network.retrying import with_retries
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.list_offsets import (
    REMOTE_TIMEOUT_MS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.protocol.topic_partition import TopicPartition


class ListedOffset(NamedTuple):
    """Result for one partition: `offset` is -1 if no record is that late, `timestamp` -1 for earliest and latest."""

    offset: int
    timestamp: int
    leader_epoch: int


async def list_offsets(
    cluster: Cluster, config: ClientConfig, wanted: Mapping[TopicPartition, int], isolation: int = 0
) -> dict[TopicPartition, ListedOffset]:
    """Find each partition's first record at or after its timestamp (-1 latest, -2 earliest, -3 maximum timestamp).

    Raises RefusedError, naming the partition. Retriable errors and lost connections are retried for api_timeout_ms.
    """
    found: dict[TopicPartition, ListedOffset] = {}

    async def attempt() -> None:
        missing = {partition: timestamp for partition, timestamp in wanted.items() if partition not in found}
        by_leader: dict[int, dict[TopicPartition, int]] = {}
        for partition, timestamp in missing.items():
            leader = await _leader(cluster, config, partition)
            by_leader.setdefault(leader, {})[partition] = timestamp
        outcomes = await asyncio.gather(
            *(_ask(cluster, leader, requested, isolation, found) for leader, requested in by_leader.items()),
            return_exceptions=True,
        )
        failures = [outcome for outcome in outcomes if outcome is not None]
        if failures:
            cluster.refresh_soon()
            raise failures[0]

    await with_retries(config, "list_offsets", attempt)
    return {partition: found[partition] for partition in wanted}


async def ensure_partition(cluster: Cluster, config: ClientConfig, topic_partition: TopicPartition) -> None:
    """Raises RefusedError if the topic or partition does not exist."""
    view = await cluster.require_topic(topic_partition.topic, config.api_timeout_ms)
    if topic_partition.partition >= len(view.leaders):  # perhaps it was added meanwhile
        await cluster.load([topic_partition.topic])
        view = await cluster.require_topic(topic_partition.topic, config.api_timeout_ms)
    if not 0 <= topic_partition.partition < len(view.leaders):
        raise UnknownTopicError(
            topic_partition.topic,
            topic_partition.partition,
            f"{topic_partition}: the topic has {len(view.leaders)} partitions, 0..{len(view.leaders) - 1}",
        )


async def _leader(cluster: Cluster, config: ClientConfig, topic_partition: TopicPartition) -> int:
    await ensure_partition(cluster, config, topic_partition)
    leader = cluster.leader(topic_partition)
    if leader == NO_LEADER:
        await cluster.load([topic_partition.topic])
        raise RefusedError.of_partition(topic_partition, ErrorCode.LEADER_NOT_AVAILABLE, None)
    return leader


async def _ask(
    cluster: Cluster,
    leader: int,
    requested: Mapping[TopicPartition, int],
    isolation: int,
    found: dict[TopicPartition, ListedOffset],
) -> None:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for (topic, partition), timestamp in requested.items():
        topics.setdefault(topic, []).append(ListOffsetsPartition(partition=partition, timestamp=timestamp))
    request = ListOffsetsRequest(
        isolation=isolation,
        topics=[ListOffsetsTopic(name=name, partitions=entries) for name, entries in topics.items()],
        timeout_ms=REMOTE_TIMEOUT_MS,
    )
    connection = await cluster.connections.connect(leader)
    response: ListOffsetsResponse = await connection.request(request)
    refusal: RefusedError | None = None
    for topic_result in response.topics:
        for result in topic_result.partitions:
            topic_partition = TopicPartition(topic_result.name, result.partition)
            if result.error is ErrorCode.NONE:
                found[topic_partition] = ListedOffset(result.offset, result.timestamp, result.leader_epoch)
            elif refusal is None or refusal.retriable:
                refusal = RefusedError.of_partition(topic_partition, result.error, None)
    if refusal is not None:
        raise refusal
    unanswered = [partition for partition in requested if partition not in found]
    if unanswered:
        raise RefusedError.of_partition(unanswered[0], ErrorCode.UNKNOWN_SERVER_ERROR, "the broker left it out")
