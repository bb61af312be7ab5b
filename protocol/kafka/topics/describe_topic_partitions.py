"""DescribeTopicPartitions (75), version 0. Its answer has no room for an error as a whole: every topic carries it."""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.topics.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from barnabas.protocol.messages.topics.metadata import PartitionMetadata, TopicMetadata

_API: Final = "describe_topic_partitions"


def decode_request(version: int, body: memoryview) -> DescribeTopicPartitionsRequest:
    """Raises DecodeError."""
    request = entities.read_request(_API, version, body)
    cursor = request.cursor
    return DescribeTopicPartitionsRequest(
        [topic.name for topic in request.topics],
        request.response_partition_limit,
        None if cursor is None else Cursor(cursor.topic_name, cursor.partition_index),
    )


def encode_response(version: int, response: DescribeTopicPartitionsResponse) -> bytes:
    """A page of topics."""
    schema = entities.response_schema(_API, version)
    cursor = response.next_cursor
    return entities.write(
        schema.DescribeTopicPartitionsResponse(
            throttle_time=entities.NO_THROTTLE,
            topics=tuple(_topic(schema, topic) for topic in response.topics),
            next_cursor=None
            if cursor is None
            else schema.Cursor(topic_name=cursor.topic, partition_index=cursor.partition),
        )
    )


def encode_error(version: int, request: DescribeTopicPartitionsRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every topic."""
    return encode_response(
        version, DescribeTopicPartitionsResponse([TopicMetadata(name, code) for name in request.topics])
    )


def _topic(schema: Any, topic: TopicMetadata) -> Any:
    return schema.DescribeTopicPartitionsResponseTopic(
        error_code=topic.error,
        name=topic.name,
        topic_id=entities.uuid_of(topic.topic_id),
        is_internal=topic.is_internal,
        partitions=tuple(_partition(schema, partition) for partition in topic.partitions),
        topic_authorized_operations=topic.authorized_operations,
    )


def _partition(schema: Any, partition: PartitionMetadata) -> Any:
    return schema.DescribeTopicPartitionsResponsePartition(
        error_code=partition.error,
        partition_index=partition.partition,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        eligible_leader_replicas=(),
        last_known_elr=(),
        offline_replicas=partition.offline,
    )
