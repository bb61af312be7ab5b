"""Fetch (key 1): stored batches from given offsets on, waiting for at least `min_bytes` of them.

The answer's `records` are opaque to the dialects: any object with a `size` in bytes (a slice of a segment file in the
broker, bytes in a client). They are sent as stored on disk.
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
    """`offset`: where to start; `max_bytes`: the most to return of this partition (except a first, larger batch).

    `current_leader_epoch`: the leader epoch that the client knows, -1 for no check.
    """

    partition: int
    offset: int
    max_bytes: int
    current_leader_epoch: int = -1


@dataclass(slots=True)
class FetchTopic:
    """One topic's partitions. A topic named by its `topic_id` (16 bytes) has an empty `name`."""

    name: str
    partitions: list[FetchPartition]
    topic_id: bytes | None = None


@dataclass(slots=True)
class FetchRequest:
    """`isolation`: 0 read_uncommitted, 1 read_committed.

    `session_id` and `session_epoch` belong to Kafka's fetch sessions: epoch 0 requests a new session, -1 no session,
    any other continues one. `replica_id` is the node of a follower, negative for a consumer.
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
    """A read_committed consumer skips the data of `producer_id` from `first_offset` to its abort marker."""

    producer_id: int
    first_offset: int


@dataclass(slots=True)
class FetchPartitionResult:
    """Offsets are -1 for an unknown partition. `records` None means no bytes.

    `current_leader` is the node and epoch for a client that sent another epoch.
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
    """One topic's results in the order of the request, with the `topic_id` if the request used it."""

    name: str
    partitions: list[FetchPartitionResult]
    topic_id: bytes | None = None


@dataclass(slots=True)
class FetchResponse:
    """Results in the order of the request; `committed_only` if the request's isolation is read_committed."""

    topics: list[FetchTopicResult]
    committed_only: bool = False


_NO_PARTS: Sequence[RecordsPart] = ()


def records_of(response: object) -> Sequence[RecordsPart]:
    """Return the record parts that follow an answer's header, in order; only a fetch has any."""
    if type(response) is not FetchResponse:
        return _NO_PARTS
    return [p.records for topic in response.topics for p in topic.partitions if p.records is not None]
