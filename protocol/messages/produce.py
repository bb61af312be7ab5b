"""Produce (key 0): one record batch each for any number of partitions."""

from __future__ import annotations

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
    """One topic's partitions."""

    name: str
    partitions: list[ProducePartition]


@dataclass(slots=True)
class ProduceRequest:
    """`acks`: 0 no answer at all, 1 the leader has written it, -1 all in-sync replicas have."""

    acks: int
    timeout_ms: int
    topics: list[ProduceTopic]


@dataclass(slots=True)
class ProducePartitionResult:
    """`base_offset` -1 on an error; `log_append_time_ms` -1 under CreateTime; `message` None without an error."""

    partition: int
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1


@dataclass(slots=True)
class ProduceTopicResult:
    """One topic's answers, in the order of the request."""

    name: str
    partitions: list[ProducePartitionResult]


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
