"""Changes of topics through Kafka's protocol. Each raises RefusedError with the broker's reason, and ClientError."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.clients.errors import ClientError, RefusedError, reason_of
from barnabas.clients.kafka.cluster import KafkaCluster
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.client.topic_changes import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_RECORDS,
    DELETE_TOPICS,
    INCREMENTAL_ALTER_CONFIGS,
)
from barnabas.protocol.messages.cluster.configs import (
    AlterConfigOp,
    AlterConfigsResource,
    ConfigResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.protocol.messages.data.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.topics.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    NewPartitions,
    NewTopic,
    config_rows,
)
from barnabas.protocol.topic_partition import TopicPartition

_SET: Final = 0
_DELETE: Final = 1


async def create_topic(
    kafka: KafkaCluster, name: str, partitions: int, replication_factor: int, settings: Mapping[str, str]
) -> None:
    """Create a topic; -1 partitions or replicas: the broker's default."""
    topic = NewTopic(
        name=name, partitions=partitions, replication_factor=replication_factor, configs=config_rows(settings)
    )
    _ensure_done(await kafka.ask_any(CREATE_TOPICS, CreateTopicsRequest(topics=[topic])), f"the topic {name!r}")


async def delete_topic(kafka: KafkaCluster, name: str) -> None:
    """Delete a topic with all its records."""
    _ensure_done(await kafka.ask_any(DELETE_TOPICS, DeleteTopicsRequest(names=[name])), f"the topic {name!r}")


async def add_partitions(kafka: KafkaCluster, name: str, total: int) -> None:
    """Give a topic more partitions, `total` in all."""
    request = CreatePartitionsRequest(topics=[NewPartitions(name=name, count=total)])
    _ensure_done(await kafka.ask_any(CREATE_PARTITIONS, request), f"the topic {name!r}")


async def change_setting(
    kafka: KafkaCluster, resource: ConfigResource, name: str, value: str | None, *, validate_only: bool = False
) -> None:
    """Set a property of a topic or broker; None removes it, so that the layer below decides.

    `validate_only`: only have the broker check the change.
    """
    operation = AlterConfigOp(name=name, operation=_DELETE if value is None else _SET, value=value)
    request = IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(type=resource.type, name=resource.name, operations=[operation])],
        validate_only=validate_only,
    )
    answer: IncrementalAlterConfigsResponse = await kafka.ask_any(INCREMENTAL_ALTER_CONFIGS, request)
    for each in answer.results:
        if each.error is not ErrorCode.NONE:
            raise RefusedError(each.error, f"{name}: {each.message or reason_of(each.error)}")


async def delete_records(kafka: KafkaCluster, partition: TopicPartition, offset: int) -> int:
    """Delete the records before `offset` and return the log start offset that the partition has then."""
    await kafka.metadata((partition.topic,))
    leader = kafka.leader(partition)
    if leader is None:
        raise ClientError(f"{partition} has no leader")
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=partition.topic, partitions=[DeleteRecordsPartition(partition=partition.partition, offset=offset)]
            )
        ]
    )
    answer: DeleteRecordsResponse = await kafka.ask(leader.node_id, DELETE_RECORDS, request)
    (result,) = (each for topic in answer.topics for each in topic.partitions)
    if result.error is not ErrorCode.NONE:
        raise RefusedError(result.error, f"{partition}: {result.message or reason_of(result.error)}")
    return result.low_watermark


def _ensure_done(answer: CreateTopicsResponse | DeleteTopicsResponse | CreatePartitionsResponse, what: str) -> None:
    for each in answer.topics:
        if each.error is not ErrorCode.NONE:
            raise RefusedError(each.error, f"{what}: {each.message or reason_of(each.error)}")
