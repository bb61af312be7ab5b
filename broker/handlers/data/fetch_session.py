"""One fetch session (KIP-227): the partitions that a client fetches, and what its last response said about each.

An incremental request has only the partitions whose position changed, and its response only those that have records, an
error, or another high watermark or log start offset than the client knows.

A partition is *pending* if an incremental fetch must read it, and *settled* if that would find nothing: its offset is
the end of the log, and the client knows the log's offsets. A settled partition watches its log like a fetch that waits.
It becomes pending by an append, DeleteRecords, its deletion or a failed log directory. So a fetch of 1,000 partitions,
one of them active, costs one read and no registration. While no fetch waits, a partition that becomes pending stops
watching, so the sessions of disconnected clients do not slow down appends.

Retention moves the log start offset on another thread, which wakes no fetch; `find_moved` notices it.

Order: the pending partitions are read in the order in which they were added to the session. Those that had records move
to the end, so that the byte limit of a response does not always leave out the same ones.

No I/O and no clock. Source: Kafka's FetchSession.java. Event loop only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from barnabas.protocol.errors import BrokerError
from barnabas.protocol.messages.data.fetch import topic_key
from barnabas.protocol.wire.pieces import NO_RECORDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.security.access import SessionAccess
    from barnabas.broker.storage.log.readable_log import ReadableLog
    from barnabas.protocol.messages.data.fetch import (
        FetchPartition,
        FetchPartitionResult,
        FetchTopic,
        PartitionKey,
    )

FIRST_EPOCH: Final = 1
"""Epoch of a session's first incremental request."""

_LAST_EPOCH: Final = 2**31 - 1
_UNKNOWN: Final = -1

Reader = tuple[int, bool, "SessionAccess | None", int]
"""Isolation level of a request, whether a follower sends it, the client's permissions and their generation.

A session is not bound to a connection. When one of these changes, all partitions are read again."""


def next_epoch(epoch: int) -> int:
    """Return the epoch of the request after the one with `epoch`: after the largest int32 comes 1."""
    return FIRST_EPOCH if epoch == _LAST_EPOCH else epoch + 1


class SessionWait(Protocol):
    """An incremental fetch that waits for records."""

    def changed(self, entry: SessionPartition) -> None:
        """Answer if the partition is unavailable, or has brought the appended bytes to the request's min_bytes."""
        ...

    def finish(self) -> None:
        """Answer now, with the records available."""
        ...

    def finish_soon(self) -> None:
        """Answer in the next turn of the loop; the session forgets the wait now."""
        ...


class SessionPartition:
    """One partition of a session: the client's fetch parameters, and the offsets of the last response.

    `topic` is the name, "" while the topic id is unknown: once found, it stays, as in Kafka, so a deleted topic is
    answered UNKNOWN_TOPIC_OR_PARTITION and one that was created again INCONSISTENT_TOPIC_ID. `topic_id` is zeros in a
    session without ids.
    """

    __slots__ = (
        "fetch",
        "high_watermark",
        "is_watching",
        "log_start_offset",
        "partition",
        "rank",
        "seen_bytes",
        "session",
        "topic",
        "topic_id",
    )

    def __init__(self, session: FetchSession, topic: str, topic_id: bytes, fetch: FetchPartition) -> None:
        self.session = session
        self.topic = topic
        self.topic_id = topic_id
        self.fetch = fetch
        self.high_watermark = _UNKNOWN
        self.log_start_offset = _UNKNOWN
        self.rank = 0
        """Place in the order of the session's partitions."""
        self.partition: Partition | None = None
        """The partition that is, or was, watched."""
        self.is_watching = False
        self.seen_bytes = 0
        """The partition's appended bytes, or stable bytes, when it was last read."""

    def differs(self, result: FetchPartitionResult) -> bool:
        """Return whether the response must contain the result."""
        return (
            bool(result.error)
            or result.records is not NO_RECORDS
            or result.diverging is not None
            or result.high_watermark != self.high_watermark
            or result.log_start_offset != self.log_start_offset
        )

    def sent(self, result: FetchPartitionResult) -> None:
        """Keep the offsets of a result that the response contains. An error has none: the next result is sent."""
        self.high_watermark = _UNKNOWN if result.error else result.high_watermark
        self.log_start_offset = _UNKNOWN if result.error else result.log_start_offset

    def has_news(self) -> bool:
        """Return whether a read would find records, an error or offsets that the client does not know."""
        partition = self.partition
        if partition is None or not partition.is_available:
            return True
        log = partition.log
        high_watermark = log.log_end_offset if self.session.is_follower else log.high_watermark
        end = log.last_stable_offset if self.session.committed_only else high_watermark
        return (
            self.fetch.offset < end
            or self._diverges(log)
            or self.high_watermark != high_watermark
            or self.log_start_offset != log.log_start_offset
        )

    def _diverges(self, log: ReadableLog) -> bool:
        """Return whether the client's log is no prefix of this one.

        Each response says so until the client sends another offset.
        """
        try:
            return log.diverging_epoch(self.fetch.last_fetched_epoch, self.fetch.offset) is not None
        except BrokerError:
            return True

    def watch(self, partition: Partition | None) -> None:
        """Watch the appends to `partition` from now on."""
        if partition is not self.partition:
            self.unwatch()
            self.partition = partition
        if partition is not None:
            self.seen_bytes = self.session.bytes_of(partition)
            if not self.is_watching:
                self.is_watching = True
                partition.add_waiter(self)

    def unwatch(self) -> None:
        """Stop watching."""
        if self.is_watching and self.partition is not None:
            self.is_watching = False
            self.partition.remove_waiter(self)

    def wake(self) -> None:
        """Become pending: records were appended, or the partition is no longer available."""
        session = self.session
        session.pending[self] = None
        if session.waiting is None:
            self.unwatch()
        else:
            session.waiting.changed(self)

    def finish(self) -> None:
        """Become pending, and answer a fetch that waits: records were deleted."""
        session = self.session
        session.pending[self] = None
        if session.waiting is None:
            self.unwatch()
        else:
            session.waiting.finish()


class FetchSession:
    """The partitions of one session, and the epoch that its next request must have.

    The cache keeps `last_used`, `cached_size` and the evictable flags.
    """

    __slots__ = (
        "_last_rank",
        "cached_size",
        "checked",
        "committed_only",
        "created",
        "epoch",
        "is_closed",
        "is_evictable",
        "is_privileged",
        "last_used",
        "partitions",
        "pending",
        "reader",
        "session_id",
        "uses_topic_ids",
        "waiting",
    )

    def __init__(
        self, session_id: int, reader: Reader, *, uses_topic_ids: bool, is_privileged: bool, now: float
    ) -> None:
        """`is_privileged`: a follower's session, which only another follower's evicts. `now` is monotonic seconds."""
        self.session_id = session_id
        self.uses_topic_ids = uses_topic_ids
        self.is_privileged = is_privileged
        self.created = now
        self.last_used = now
        self.checked = now
        """When `find_moved` last ran."""
        self.cached_size = -1
        """Number of partitions that the cache has counted, -1 before the session is in the cache."""
        self.is_evictable = False
        """Whether the session is old enough to be evicted by larger ones."""
        self.epoch = FIRST_EPOCH
        self.reader = reader
        self.committed_only = bool(reader[0])
        self.partitions: dict[PartitionKey, SessionPartition] = {}
        self.pending: dict[SessionPartition, None] = {}
        self.waiting: SessionWait | None = None
        self.is_closed = False
        self._last_rank = 0

    def add(self, topic: str, topic_id: bytes, fetch: FetchPartition) -> SessionPartition:
        """Add a partition, pending, at the end of the order."""
        entry = SessionPartition(self, topic, topic_id, fetch)
        self.partitions[topic_key(topic, topic_id), fetch.partition] = entry
        self.pending[entry] = None
        self.move_to_end(entry)
        return entry

    def update(self, topics: Iterable[FetchTopic], forgotten: Iterable[PartitionKey]) -> None:
        """Add the partitions of a request or replace their parameters, then remove the forgotten ones."""
        for topic in topics:
            key = topic.key
            for fetch in topic.partitions:
                entry = self.partitions.get((key, fetch.partition))
                if entry is None:
                    self.add(topic.name, topic.topic_id, fetch)
                else:
                    entry.fetch = fetch
                    self.pending[entry] = None
        for each in forgotten:
            removed = self.partitions.pop(each, None)
            if removed is not None:
                removed.unwatch()
                self.pending.pop(removed, None)

    @property
    def is_follower(self) -> bool:
        """Whether a standby fetches, which also gets what consumers must not read yet."""
        return self.reader[1]

    @property
    def has_settled(self) -> bool:
        """Whether a partition is settled, so records may come to it."""
        return len(self.pending) < len(self.partitions)

    def bytes_of(self, partition: Partition) -> int:
        """Return the appended bytes of the partition that count for this session's waits."""
        if self.is_follower:
            return partition.written_bytes
        return partition.stable_bytes if self.committed_only else partition.appended_bytes

    def read_by(self, reader: Reader) -> None:
        """Make all partitions pending if another reader has fetched last."""
        if reader != self.reader:
            self.reader = reader
            self.committed_only = bool(reader[0])
            self.pending = dict.fromkeys(self.partitions.values())

    def find_moved(self) -> None:
        """Make the settled partitions pending whose offsets are no longer those that the client knows."""
        self.checked = self.last_used
        pending = self.pending
        for entry in self.partitions.values():
            if entry not in pending and entry.has_news():
                pending[entry] = None

    def pending_in_order(self) -> list[SessionPartition]:
        """Return the partitions that a fetch must read, in the order of the session."""
        return sorted(self.pending, key=lambda entry: entry.rank)

    def move_to_end(self, entry: SessionPartition) -> None:
        """Make the partition the last one of the session's order."""
        self._last_rank += 1
        entry.rank = self._last_rank

    def settle(self, entry: SessionPartition, partition: Partition | None) -> None:
        """Settle a partition after a response if a read would find nothing; `partition` None if it is unknown."""
        if self.is_closed:
            return
        entry.watch(partition)
        if entry.has_news():
            entry.unwatch()
        else:
            self.pending.pop(entry, None)

    def close(self) -> None:
        """Watch nothing any more, and answer a fetch that waits."""
        self.is_closed = True
        for entry in self.partitions.values():
            entry.unwatch()
        self.pending = dict.fromkeys(self.partitions.values())
        if self.waiting is not None:
            self.waiting.finish_soon()
