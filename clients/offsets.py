"""Offsets by timestamp from the leader of each partition, for the consumer and the admin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import ClientError, RefusedError
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.connection import Connection
from barnabas.clients.network.routing import ask_leaders
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.list_offsets import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
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

    async def ask(
        connection: Connection, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, ListedOffset | ClientError]:
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for each in partitions:
            topics.setdefault(each.topic, []).append(
                ListOffsetsPartition(partition=each.partition, timestamp=wanted[each])
            )
        request = ListOffsetsRequest(
            isolation=isolation,
            topics=[ListOffsetsTopic(name=name, partitions=entries) for name, entries in topics.items()],
            timeout_ms=REMOTE_TIMEOUT_MS,
        )
        response: ListOffsetsResponse = await connection.request(request)
        return {
            TopicPartition(topic.name, result.partition): (
                ListedOffset(result.offset, result.timestamp, result.leader_epoch)
                if result.error is ErrorCode.NONE
                else RefusedError.of_partition(TopicPartition(topic.name, result.partition), result.error, None)
            )
            for topic in response.topics
            for result in topic.partitions
        }

    found: dict[TopicPartition, ListedOffset] = {}
    for partition, answer in (await ask_leaders(cluster, config, "list_offsets", wanted, ask)).items():
        if isinstance(answer, RefusedError):
            raise answer
        found[partition] = answer
    return found


async def log_range(cluster: Cluster, config: ClientConfig, topic_partition: TopicPartition) -> tuple[int, int]:
    """Find a log's first offset and its end. Raises as `list_offsets`."""
    first = await list_offsets(cluster, config, {topic_partition: EARLIEST_TIMESTAMP})
    last = await list_offsets(cluster, config, {topic_partition: LATEST_TIMESTAMP})
    return first[topic_partition].offset, last[topic_partition].offset
