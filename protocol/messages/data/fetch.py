"""Fetch (key 1): stored batches from given offsets on, waiting for at least `min_bytes` of them.

The answer's `records` are opaque to the dialects: anything with a `size` in bytes (a slice of a segment file in the
broker, bytes in a client). They leave as they lie on disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from barnabas.protocol.errors import ErrorCode

READ_UNCOMMITTED = 0
READ_COMMITTED = 1


class RecordsPart(Protocol):
    """Record bytes that are sent after an answer's header."""

    @property
    def size(self) -> int:
        """Bytes to send."""
        ...


class RecordBytes(bytes):
    """Record batches in memory, as a part of an answer."""

    __slots__ = ()

    @property
    def size(self) -> int:
        """Bytes to send."""
        return len(self)


@dataclass(slots=True)
class FetchPartition:
    """`offset`: where to start; `max_bytes`: at most this much of this partition (but for a first, larger batch).

    `current_leader_epoch`: the one that the client believes in, -1 for whatever it is.
    """

    partition: int
    offset: int
    max_bytes: int
    current_leader_epoch: int = -1


@dataclass(slots=True)
class FetchTopic:
    """One topic's partitions. With a `topic_id` (16 bytes) that is what names it, and `name` is empty."""

    name: str
    partitions: list[FetchPartition]
    topic_id: bytes | None = None


@dataclass(slots=True)
class FetchRequest:
    """`isolation`: 0 read_uncommitted, 1 read_committed.

    `session_id` and `session_epoch` are those of Kafka's fetch sessions: an epoch of 0 asks for a new one, -1 for none,
    any other goes on with one. `replica_id` is the node of a follower, negative for a consumer.
    """

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation: int
    topics: list[FetchTopic]
    session_id: int = 0
    session_epoch: int = -1
    replica_id: int = -1


@dataclass(slots=True)
class AbortedTransaction:
    """Data of `producer_id` from `first_offset` to its abort marker is to be skipped by a read_committed consumer."""

    producer_id: int
    first_offset: int


@dataclass(slots=True)
class FetchPartitionResult:
    """Offsets are -1 where the partition is not here. `records` None means no bytes.

    `current_leader` is the node and epoch that a client with another epoch should know of.
    """

    partition: int
    error: ErrorCode = ErrorCode.NONE
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    aborted: list[AbortedTransaction] = field(default_factory=list)
    records: RecordsPart | None = None
    current_leader: tuple[int, int] | None = None


@dataclass(slots=True)
class FetchTopicResult:
    """One topic's answers, in the order of the request, and under its `topic_id` where it was asked by that."""

    name: str
    partitions: list[FetchPartitionResult]
    topic_id: bytes | None = None


@dataclass(slots=True)
class FetchResponse:
    """The answers of all partitions, in the order of the request; `committed_only` as the request had it."""

    topics: list[FetchTopicResult]
    committed_only: bool = False


_NO_PARTS: Sequence[RecordsPart] = ()


def records_of(response: object) -> Sequence[RecordsPart]:
    """The record parts that follow the header of an answer, in its order: none but for a fetch."""
    if type(response) is not FetchResponse:
        return _NO_PARTS
    return [p.records for topic in response.topics for p in topic.partitions if p.records is not None]
