"""Deletion of the records below an offset."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.clients.admin.log_dirs import by_topic
from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import BrokerConnectionError, BrokerTimeoutError, ClientError, RefusedError
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.connection import Connection
from barnabas.clients.network.retrying import command
from barnabas.clients.network.routing import ask_leaders
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from barnabas.protocol.topic_partition import TopicPartition


async def delete_records(
    cluster: Cluster, config: ClientConfig, offsets: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int | RefusedError]:
    """Delete records at the partitions' leaders. Returns each one's new log start offset, or the broker's error.

    Raises BrokerConnectionError or BrokerTimeoutError if it is not known whether a leader has deleted them.
    """

    async def ask(connection: Connection, partitions: list[TopicPartition]) -> dict[TopicPartition, int | ClientError]:
        request = DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=name,
                    partitions=[
                        DeleteRecordsPartition(partition=number, offset=offsets[TopicPartition(name, number)])
                        for number in numbers
                    ],
                )
                for name, numbers in by_topic(partitions).items()
            ],
            timeout_ms=config.request_timeout_ms,
        )
        try:
            # The broker has request_timeout_ms for the work, and its response as long again to arrive.
            response: DeleteRecordsResponse = await command(connection, request, 2 * config.request_timeout_ms)
        except (
            BrokerConnectionError,
            BrokerTimeoutError,
        ) as error:
            # Not sent again: "all records" may be more by then.
            return dict.fromkeys(partitions, error)
        return {
            TopicPartition(topic.name, result.partition): (
                result.low_watermark
                if result.error is ErrorCode.NONE
                else RefusedError.of_partition(
                    TopicPartition(topic.name, result.partition), result.error, result.message
                )
            )
            for topic in response.topics
            for result in topic.partitions
        }

    return await ask_leaders(cluster, config, DeleteRecordsRequest.api_key.label, offsets, ask)
