"""DescribeProducers (61), version 0."""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.data.describe_producers import (
    DescribeProducersPartitionResult,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopic,
    DescribeProducersTopicResult,
)

_API: Final = "describe_producers"


def decode_request(version: int, body: memoryview) -> DescribeProducersRequest:
    """Raises DecodeError."""
    request = entities.read_request(_API, version, body)
    return DescribeProducersRequest(
        [DescribeProducersTopic(topic.name, topic.partition_indexes) for topic in request.topics]
    )


def encode_response(version: int, response: DescribeProducersResponse) -> bytes:
    """A row for each partition."""
    schema = entities.response_schema(_API, version)
    topics = tuple(
        schema.TopicResponse(name=topic.name, partitions=tuple(_row(schema, each) for each in topic.partitions))
        for topic in response.topics
    )
    return entities.write(schema.DescribeProducersResponse(throttle_time=entities.NO_THROTTLE, topics=topics))


def encode_error(version: int, request: DescribeProducersRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every partition."""
    topics = [
        DescribeProducersTopicResult(
            topic.name,
            [DescribeProducersPartitionResult(partition, code, message) for partition in topic.partitions],
        )
        for topic in request.topics
    ]
    return encode_response(version, DescribeProducersResponse(topics))


def _row(schema: Any, result: DescribeProducersPartitionResult) -> Any:
    return schema.PartitionResponse(
        partition_index=result.partition,
        error_code=result.error,
        error_message=entities.sentence(result.message),
        active_producers=tuple(
            schema.ProducerState(
                producer_id=each.producer_id,
                producer_epoch=each.epoch,
                last_sequence=each.last_sequence,
                last_timestamp=each.last_timestamp,
                coordinator_epoch=each.coordinator_epoch,
                current_txn_start_offset=each.transaction_start_offset,
            )
            for each in result.producers
        ),
    )
