"""describe_producers (61): the active producers of partitions.

request   topics [[name, [partition]]], producer_id int or nil (nil: all of them)
response  topics [[name, [[partition, error, message, [[producer_id, epoch, last_sequence, last_timestamp,
                                                        coordinator_epoch, transaction_start]]]]]]
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.messages.data.describe_producers import (
    ActiveProducer,
    DescribeProducersPartitionResult,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopic,
    DescribeProducersTopicResult,
)
from barnabas.protocol.native.fields import (
    INT16,
    INT32,
    INT64,
    array,
    error_code,
    field,
    integer,
    long_text,
    partition_number,
    row,
    topics_of,
)


def encode_request(request: DescribeProducersRequest) -> dict[str, Any]:
    """The body of a request."""
    topics = [[topic.name, list(topic.partitions)] for topic in request.topics]
    return {"topics": topics, "producer_id": request.producer_id}


def decode_request(body: dict[str, Any]) -> DescribeProducersRequest:
    """Raises DecodeError, naming the field."""
    topics = topics_of(field(body, "topics"), DescribeProducersTopic, partition_number)
    producer_id = field(body, "producer_id", None)
    return DescribeProducersRequest(
        topics=topics, producer_id=None if producer_id is None else integer(producer_id, "producer_id", INT64)
    )


def encode_response(response: DescribeProducersResponse) -> dict[str, Any]:
    """The body of an answer."""
    return {"topics": [[topic.name, [_row_of(each) for each in topic.partitions]] for topic in response.topics]}


def decode_response(body: dict[str, Any]) -> DescribeProducersResponse:
    """Raises DecodeError, naming the field."""
    return DescribeProducersResponse(topics=topics_of(field(body, "topics"), DescribeProducersTopicResult, _result))


def _row_of(result: DescribeProducersPartitionResult) -> list[Any]:
    producers = [
        [
            each.producer_id,
            each.epoch,
            each.last_sequence,
            each.last_timestamp,
            each.coordinator_epoch,
            each.transaction_start_offset,
        ]
        for each in result.producers
    ]
    return [result.partition, int(result.error), result.message, producers]


def _result(entry: Any) -> DescribeProducersPartitionResult:
    partition, error, message, producers = row(entry, "partitions[]", 4)
    return DescribeProducersPartitionResult(
        partition=integer(partition, "partition", INT32),
        error=error_code(error, "error"),
        message=long_text(message, "message"),
        producers=[_producer(each) for each in array(producers, "producers")],
    )


def _producer(entry: Any) -> ActiveProducer:
    producer_id, epoch, last_sequence, last_timestamp, coordinator_epoch, start = row(entry, "producers[]", 6)
    return ActiveProducer(
        producer_id=integer(producer_id, "producer_id", INT64),
        epoch=integer(epoch, "epoch", INT16),
        last_sequence=integer(last_sequence, "last_sequence", INT32),
        last_timestamp=integer(last_timestamp, "last_timestamp", INT64),
        coordinator_epoch=integer(coordinator_epoch, "coordinator_epoch", INT32),
        transaction_start_offset=integer(start, "transaction_start", INT64),
    )
