"""Produce (key 0): one record batch each for any number of partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode

ACKS_ALL = -1
ACKS_NONE = 0
ACKS_LEADER = 1


@dataclass(slots=True)
class ProducePartition:
    """The batch for one partition. `records` is a writable view of the receive buffer, valid in the handler."""

    partition: int
    records: memoryview


@dataclass(slots=True)
class ProduceTopic:
    """One topic's partitions. With a `topic_id` (16 bytes) that is what names it, and `name` is empty."""

    name: str
    partitions: list[ProducePartition]
    topic_id: bytes | None = None


@dataclass(slots=True)
class ProduceRequest:
    """`acks`: 0 no answer at all, 1 the leader has written it, -1 all in-sync replicas have.

    `takes_zstd`: whether a client that speaks like this may send zstd (Kafka's versions below 7 are older than that).
    """

    acks: int
    timeout_ms: int
    topics: list[ProduceTopic]
    transactional_id: str | None = None
    takes_zstd: bool = True


@dataclass(slots=True)
class ProducePartitionResult:
    """`base_offset` -1 on an error; `log_append_time_ms` -1 under CreateTime; `message` None without an error.

    `record_errors`: the records that were why the batch was refused, by their index in it, each with a sentence.
    """

    partition: int
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: Sequence[tuple[int, str]] = ()


@dataclass(slots=True)
class ProduceTopicResult:
    """One topic's answers, in the order of the request, and under its `topic_id` where it was asked by that."""

    name: str
    partitions: list[ProducePartitionResult]
    topic_id: bytes | None = None


@dataclass(slots=True)
class ProduceResponse:
    """The answers of all partitions, in the order of the request."""

    topics: list[ProduceTopicResult]


_FORGOTTEN = memoryview(b"")


def forget_records(request: object) -> None:
    """Let go of a produce request's views of the receive buffer; any other request has none."""
    if type(request) is ProduceRequest:
        for topic in request.topics:
            for partition in topic.partitions:
                partition.records = _FORGOTTEN
