"""Fetch (key 1): stored batches from given offsets on, waiting for at least `min_bytes` of them.

The answer's `records` are opaque to the dialects: any object with a `size` in bytes (a slice of a segment file in the
broker, bytes in a client). They are sent as stored on disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.message import Message

READ_UNCOMMITTED = 0
READ_COMMITTED = 1

DEFAULT_MAX_BYTES = 52_428_800
"""fetch.max.bytes of Kafka's consumer, for requests that do not name a limit."""

NEW_SESSION = 0
"""Session epoch of a full request that opens a new fetch session."""

NO_SESSION = -1
"""Session epoch of a full request without a fetch session."""

STANDBY_REPLICA_ID = (1 << 31) - 2
"""The replica id of a standby's fetches. It is no node id: a standby has the node id of its active broker."""

COMPARING_REPLICA_ID = STANDBY_REPLICA_ID - 1
"""The replica id of fetches by which a standby compares batches: their offsets do not say what it has."""

STANDBY_REPLICA_IDS = frozenset({STANDBY_REPLICA_ID, COMPARING_REPLICA_ID})

UNREAD_ERRORS = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.TOPIC_AUTHORIZATION_FAILED}
)
"""Errors of partitions that the broker does not try to read."""

PartitionKey = tuple[bytes | str, int]
"""A partition of a fetch session: topic id, in versions without ids the topic's name, and partition number."""


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


@dataclass(slots=True, eq=False, repr=False)
class FetchPartition(Message):
    """`offset`: where to start; `max_bytes`: the most to return of this partition (except a first, larger batch).

    `current_leader_epoch`: the leader epoch that the client knows, -1 for no check. `last_fetched_epoch`: the leader
    epoch of the client's last batch, to be compared with the log, -1 for no comparison; consumers send none.
    """

    partition: int
    offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1


@dataclass(slots=True, eq=False, repr=False)
class FetchTopic(Message):
    """One topic's partitions. A topic named by its `topic_id` (16 bytes) has an empty `name`."""

    name: str
    partitions: list[FetchPartition]
    topic_id: bytes | None = None


@dataclass(slots=True, eq=False, repr=False)
class FetchRequest(Message):
    """`isolation`: 0 read_uncommitted, 1 read_committed.

    `session_id` and `session_epoch` belong to Kafka's fetch sessions (KIP-227): epoch 0 requests a new session, -1 no
    session, any other continues one. An incremental request has only the partitions that are new or changed;
    `forgotten` are those to remove from the session, each as topic (its id, or its name) and number.
    `uses_topic_ids`: whether the request's version names topics by id. `replica_id` is the node of a follower, negative
    for a consumer.
    """

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation: int
    topics: list[FetchTopic]
    session_id: int = 0
    session_epoch: int = NO_SESSION
    replica_id: int = -1
    forgotten: Sequence[PartitionKey] = ()
    uses_topic_ids: bool = False


@dataclass(slots=True, eq=False, repr=False)
class AbortedTransaction(Message):
    """A read_committed consumer skips the data of `producer_id` from `first_offset` to its abort marker."""

    producer_id: int
    first_offset: int


@dataclass(slots=True, eq=False, repr=False)
class FetchPartitionResult(Message):
    """Offsets are -1 for an unknown partition. `records` None means no bytes.

    `current_leader` is the node and epoch for a client that sent another epoch. `diverging`: the largest leader epoch
    up to the client's `last_fetched_epoch`, and its end offset, if the client's log is no prefix of this one; then
    there are no records.
    """

    partition: int
    error: ErrorCode = ErrorCode.NONE
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    aborted: list[AbortedTransaction] = field(default_factory=list)
    records: RecordsPart | None = None
    current_leader: tuple[int, int] | None = None
    diverging: tuple[int, int] | None = None


@dataclass(slots=True, eq=False, repr=False)
class FetchTopicResult(Message):
    """One topic's results in the order of the request, with the `topic_id` if the request used it.

    `name` is empty for an unknown topic id.
    """

    name: str
    partitions: list[FetchPartitionResult]
    topic_id: bytes | None = None


@dataclass(slots=True, eq=False, repr=False)
class FetchResponse(Message):
    """Results in the order of the request; `committed_only` if the request's isolation is read_committed.

    An incremental fetch is answered with the partitions that have records, an error or other offsets than before.
    `session_id` is the fetch session that the client continues, 0 for none. `error` refuses a request because of its
    session.
    """

    topics: list[FetchTopicResult]
    committed_only: bool = False
    session_id: int = 0
    error: ErrorCode = ErrorCode.NONE


_NO_PARTS: Sequence[RecordsPart] = ()


def records_of(response: object) -> Sequence[RecordsPart]:
    """Return the record parts that follow an answer's header, in order; only a fetch has any."""
    if type(response) is not FetchResponse:
        return _NO_PARTS
    return [p.records for topic in response.topics for p in topic.partitions if p.records is not None]
