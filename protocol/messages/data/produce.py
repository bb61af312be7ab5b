"""Produce (key 0): one record batch for each of several partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.message import Message

ACKS_ALL = -1
ACKS_NONE = 0
ACKS_LEADER = 1


@dataclass(slots=True, eq=False, repr=False)
class ProducePartition(Message):
    """The batch for one partition. `records` is a writable view of the receive buffer, valid only in the handler."""

    partition: int
    records: memoryview


@dataclass(slots=True, eq=False, repr=False)
class ProduceTopic(Message):
    """One topic's partitions. A topic named by its `topic_id` (16 bytes) has an empty `name`."""

    name: str
    partitions: list[ProducePartition]
    topic_id: bytes | None = None


@dataclass(slots=True, eq=False, repr=False)
class ProduceRequest(Message):
    """`acks`: 0 no answer, 1 the leader has written the batch, -1 all in-sync replicas have.

    `takes_zstd`: whether the client's version allows zstd (Kafka's versions below 7 do not). `adds_partitions`: whether
    the request adds its partitions to the transaction of `transactional_id`; otherwise (Kafka's versions below 12) they
    must be part of it. `knows_abortable`: whether the client knows TRANSACTION_ABORTABLE (Kafka's versions below 11 do
    not).
    """

    acks: int
    timeout_ms: int
    topics: list[ProduceTopic]
    transactional_id: str | None = None
    takes_zstd: bool = True
    adds_partitions: bool = True
    knows_abortable: bool = True


@dataclass(slots=True, eq=False, repr=False)
class ProducePartitionResult(Message):
    """`base_offset` -1 on an error; `log_append_time_ms` -1 under CreateTime; `message` None without an error.

    `record_errors`: the records that caused the refusal of the batch, by their index in it, each with a message.
    """

    partition: int
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: Sequence[tuple[int, str]] = ()


@dataclass(slots=True, eq=False, repr=False)
class ProduceTopicResult(Message):
    """One topic's results in the order of the request, with the `topic_id` if the request used it."""

    name: str
    partitions: list[ProducePartitionResult]
    topic_id: bytes | None = None


@dataclass(slots=True, eq=False, repr=False)
class ProduceResponse(Message):
    """Results in the order of the request."""

    topics: list[ProduceTopicResult]


_FORGOTTEN = memoryview(b"")


def copy_of_records(request: ProduceRequest) -> ProduceRequest:
    """Return the request with copies of its records, which outlive the handler's call."""
    topics = [
        ProduceTopic(
            topic.name,
            [ProducePartition(each.partition, memoryview(bytearray(each.records))) for each in topic.partitions],
            topic.topic_id,
        )
        for topic in request.topics
    ]
    return replace(request, topics=topics)


def forget_records(request: object) -> None:
    """Release a produce request's views of the receive buffer; other requests have none."""
    if type(request) is ProduceRequest:
        for topic in request.topics:
            for partition in topic.partitions:
                partition.records = _FORGOTTEN
