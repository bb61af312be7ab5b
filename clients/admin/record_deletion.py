"""Deletion of the records below an offset."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.clients.admin.log_dirs import by_topic
from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import RefusedError
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.retrying import command_any
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
    """Delete records. Returns each partition's new log start offset, or the broker's error."""
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=name,
                partitions=[
                    DeleteRecordsPartition(partition=number, offset=offsets[TopicPartition(name, number)])
                    for number in numbers
                ],
            )
            for name, numbers in by_topic(offsets).items()
        ],
        timeout_ms=config.request_timeout_ms,
    )
    # The broker has request_timeout_ms for the work, and its response as long again to arrive.
    response: DeleteRecordsResponse = await command_any(cluster, config, request, 2 * config.request_timeout_ms)
    found: dict[TopicPartition, int | RefusedError] = {}
    for topic in response.topics:
        for result in topic.partitions:
            topic_partition = TopicPartition(topic.name, result.partition)
            if result.error is ErrorCode.NONE:
                found[topic_partition] = result.low_watermark
            else:
                found[topic_partition] = RefusedError.of_partition(topic_partition, result.error, result.message)
    left_out = (ErrorCode.UNKNOWN_SERVER_ERROR, "the broker left it out of its answer")
    return {each: found.get(each, RefusedError.of_partition(each, *left_out)) for each in offsets}
