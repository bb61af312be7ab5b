"""Changes of topics through Kafka's protocol. Each raises RefusedError with the broker's reason, and ClientError."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from barnabas.clients.errors import ClientError, RefusedError, reason_of
from barnabas.clients.network.cluster import Cluster
from barnabas.protocol.errors import ErrorCode
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
    CreateTopicsRequest,
    DeleteTopicsRequest,
    NewPartitions,
    NewTopic,
    config_rows,
)
from barnabas.protocol.topic_partition import TopicPartition

_SET: Final = 0
_DELETE: Final = 1


async def create_topic(
    kafka: Cluster, name: str, partitions: int, replication_factor: int, settings: Mapping[str, str]
) -> None:
    """Create a topic; -1 partitions or replicas: the broker's default."""
    topic = NewTopic(
        name=name, partitions=partitions, replication_factor=replication_factor, configs=config_rows(settings)
    )
    answer: Any = await kafka.ask_any(CreateTopicsRequest(topics=[topic]))
    _ensure_done(answer, f"the topic {name!r}")


async def delete_topic(kafka: Cluster, name: str) -> None:
    """Delete a topic with all its records."""
    answer: Any = await kafka.ask_any(DeleteTopicsRequest(names=[name]))
    _ensure_done(answer, f"the topic {name!r}")


async def add_partitions(kafka: Cluster, name: str, total: int) -> None:
    """Give a topic more partitions, `total` in all."""
    request = CreatePartitionsRequest(topics=[NewPartitions(name=name, count=total)])
    answer: Any = await kafka.ask_any(request)
    _ensure_done(answer, f"the topic {name!r}")


async def change_setting(
    kafka: Cluster, resource: ConfigResource, name: str, value: str | None, *, validate_only: bool = False
) -> None:
    """Set a property of a topic or broker; None removes it, so that the layer below decides.

    `validate_only`: only have the broker check the change.
    """
    operation = AlterConfigOp(name=name, operation=_DELETE if value is None else _SET, value=value)
    request = IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(type=resource.type, name=resource.name, operations=[operation])],
        validate_only=validate_only,
    )
    answer: IncrementalAlterConfigsResponse = await kafka.ask_any(request)
    for each in answer.results:
        if each.error is not ErrorCode.NONE:
            raise RefusedError(each.error, f"{name}: {each.message or reason_of(each.error)}")


async def delete_records(kafka: Cluster, partition: TopicPartition, offset: int) -> int:
    """Delete the records before `offset` and return the log start offset that the partition has then."""
    await kafka.load((partition.topic,))
    leader = kafka.leader_of(partition)
    if leader is None:
        raise ClientError(f"{partition} has no leader")
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=partition.topic, partitions=[DeleteRecordsPartition(partition=partition.partition, offset=offset)]
            )
        ]
    )
    answer: DeleteRecordsResponse = await kafka.ask(leader.node_id, request)
    (result,) = (each for topic in answer.topics for each in topic.partitions)
    if result.error is not ErrorCode.NONE:
        raise RefusedError(result.error, f"{partition}: {result.message or reason_of(result.error)}")
    return result.low_watermark


def _ensure_done(answer: Any, what: str) -> None:
    for each in answer.topics:
        if each.error is not ErrorCode.NONE:
            raise RefusedError(each.error, f"{what}: {each.message or reason_of(each.error)}")
