"""DescribeProducers (key 61): which producers a partition knows, and how far each has come."""

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
    """Several topics at once. With `producer_id` only that one is told of."""

    topics: list[DescribeProducersTopic]
    producer_id: int | None = None


@dataclass(slots=True)
class ActiveProducer:
    """A producer as its partition remembers it; -1 where there is no such thing.

    `last_timestamp` in ms; `transaction_start_offset` of the transaction that is open.
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
