"""Offsets of many partitions, asked from their leaders."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping

from barnabas.clients.errors import ClientError
from barnabas.clients.network.cluster import Cluster
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.list_offsets import (
    REMOTE_TIMEOUT_MS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.topic_partition import TopicPartition


async def offsets_at(
    kafka: Cluster, leaders: Mapping[TopicPartition, int], timestamp: int, problems: list[str]
) -> dict[TopicPartition, int]:
    """Return the first offset at or after a time in ms, or at EARLIEST_TIMESTAMP or LATEST_TIMESTAMP.

    -1: no record is as late. Partitions whose leader does not answer are left out, with a sentence in `problems`.
    """
    by_leader: dict[int, dict[str, list[ListOffsetsPartition]]] = defaultdict(lambda: defaultdict(list))
    for key, leader in leaders.items():
        if leader >= 0:
            by_leader[leader][key.topic].append(ListOffsetsPartition(partition=key.partition, timestamp=timestamp))
    found: dict[TopicPartition, int] = {}

    async def ask(node_id: int, wanted: dict[str, list[ListOffsetsPartition]]) -> None:
        request = ListOffsetsRequest(
            isolation=0,
            topics=[ListOffsetsTopic(name=name, partitions=parts) for name, parts in wanted.items()],
            timeout_ms=REMOTE_TIMEOUT_MS,
        )
        try:
            answer = await kafka.ask(node_id, request)
        except ClientError as error:
            problems.append(f"offsets of broker {node_id}: {error}")
            return
        for topic in answer.topics:
            for each in topic.partitions:
                if each.error is ErrorCode.NONE:
                    found[TopicPartition(topic.name, each.partition)] = each.offset

    await asyncio.gather(*(ask(node_id, wanted) for node_id, wanted in by_leader.items()))
    return found
