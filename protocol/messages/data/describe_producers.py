"""DescribeProducers (key 61): the active producers of partitions and their last sequences."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Error, Int32, Int64, Message, String


class ActiveProducer(Struct):
    """A producer's state in a partition; -1 for a field without a value.

    `last_timestamp` in ms; `transaction_start_offset` of the open transaction.
    """

    producer_id: Int64
    epoch: Int32
    last_sequence: Int32
    last_timestamp: Int64
    coordinator_epoch: Int32
    transaction_start_offset: Int64


class DescribeProducersPartitionResult(Struct):
    """One partition's producers."""

    partition: Int32
    error: Error = ErrorCode.NONE
    message: Message = None
    producers: Sequence[ActiveProducer] = ()


class DescribeProducersTopicResult(Struct):
    """Results of one topic."""

    name: String
    partitions: Sequence[DescribeProducersPartitionResult]


class DescribeProducersResponse(Struct, flexible=0):
    """In the order of the request."""

    throttle_ms: Int32 = 0
    topics: Sequence[DescribeProducersTopicResult]


class DescribeProducersTopic(Struct):
    """Partitions of one topic."""

    name: String
    partitions: Sequence[Int32]


class DescribeProducersRequest(Request[DescribeProducersResponse], api=ApiKey.DESCRIBE_PRODUCERS, flexible=0):
    """Partitions of several topics."""

    topics: Sequence[DescribeProducersTopic]

    def refused(self, code: ErrorCode, message: str) -> DescribeProducersResponse:
        """The same refusal for every partition."""
        return DescribeProducersResponse(
            topics=[
                DescribeProducersTopicResult(
                    name=topic.name,
                    partitions=[
                        DescribeProducersPartitionResult(partition=each, error=code, message=message)
                        for each in topic.partitions
                    ],
                )
                for topic in self.topics
            ]
        )
