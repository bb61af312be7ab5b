"""The producers that partitions know, from the leader of each, for the admin and for producers with an identity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import ClientError, RefusedError
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.connection import Connection
from barnabas.clients.network.routing import ask_leaders
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.describe_producers import (
    ActiveProducer,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopic,
)
from barnabas.protocol.topic_partition import TopicPartition

PARTITIONS_PER_REQUEST: Final = 50
"""A partition has 36 bytes for each producer of a day."""


async def describe_producers(
    cluster: Cluster, config: ClientConfig, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, Sequence[ActiveProducer] | RefusedError]:
    """Describe the producers of each partition, or return its error. Raises ClientError."""

    async def ask(
        connection: Connection, asked: list[TopicPartition]
    ) -> dict[TopicPartition, Sequence[ActiveProducer] | ClientError]:
        topics: dict[str, list[int]] = {}
        for topic, partition in asked:
            topics.setdefault(topic, []).append(partition)
        response: DescribeProducersResponse = await connection.request(
            DescribeProducersRequest(
                topics=[DescribeProducersTopic(name=name, partitions=numbers) for name, numbers in topics.items()]
            )
        )
        return {
            TopicPartition(topic.name, result.partition): (
                result.producers
                if result.error is ErrorCode.NONE
                else RefusedError.of_partition(
                    TopicPartition(topic.name, result.partition), result.error, result.message
                )
            )
            for topic in response.topics
            for result in topic.partitions
        }

    what = DescribeProducersRequest.api_key.label
    return await ask_leaders(cluster, config, what, partitions, ask, at_once=PARTITIONS_PER_REQUEST)
