"""DescribeProducers (key 61): the active producers of partitions and their last sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode


@dataclass(slots=True)
class DescribeProducersTopic:
    """Partitions of one topic."""

    name: str
    partitions: Sequence[int]


@dataclass(slots=True)
class DescribeProducersRequest:
    """Partitions of several topics. `producer_id` restricts the answer to one producer."""

    topics: list[DescribeProducersTopic]
    producer_id: int | None = None


@dataclass(slots=True)
class ActiveProducer:
    """A producer's state in a partition; -1 for a field without a value.

    `last_timestamp` in ms; `transaction_start_offset` of the open transaction.
    """

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start_offset: int


@dataclass(slots=True)
class DescribeProducersPartitionResult:
    """One partition's producers."""

    partition: int
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    producers: Sequence[ActiveProducer] = ()


@dataclass(slots=True)
class DescribeProducersTopicResult:
    """Results of one topic."""

    name: str
    partitions: list[DescribeProducersPartitionResult]


@dataclass(slots=True)
class DescribeProducersResponse:
    """In the order of the request."""

    topics: list[DescribeProducersTopicResult]
