"""Fetch (key 1): stored batches of any number of partitions, waiting for at least `min_bytes` of them.

`max_bytes` (at most fetch.max.bytes) is spent on the partitions in the order of the request. The first one that has
records may exceed it, and its own `max_bytes`, by its first batch, so that a batch larger than both can be read. With
read_committed a response ends before the first open transaction, and lists the aborted transactions in it. The last
batch of a response may be incomplete, the first never is.

The client may READ each topic, a follower the whole cluster with CLUSTER_ACTION: TOPIC_AUTHORIZATION_FAILED for the
partitions, before any other error but UNKNOWN_TOPIC_ID. Differs from Kafka: a long poll is checked again when it is
answered, so a revoked permission holds for fetches that wait.

Errors per partition: OFFSET_OUT_OF_RANGE below the log start or beyond the log end; FENCED_LEADER_EPOCH or
UNKNOWN_LEADER_EPOCH for a leader epoch other than the current one; UNKNOWN_TOPIC_ID; and, because there are no
followers, Kafka's codes for a replica that is not assigned: NOT_LEADER_OR_FOLLOWER, or UNKNOWN_LEADER_EPOCH if the
follower sends an epoch. For the whole request: FETCH_SESSION_ID_NOT_FOUND for an incremental fetch, since there are no
fetch sessions (the client then sends a full request); UNKNOWN_SERVER_ERROR, as in Kafka, for an unknown isolation
level.

Answered without waiting: any error, `max_wait_ms` 0, and records of a segment that is not the last, because a response
takes records of one segment only and more follow.

A client with a quota reads at most what the whole window of its quota allows, and above its quota an empty response.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.authorization import denial, ensure_allowed, is_cluster_allowed
from barnabas.broker.handlers.data.isolation import ensure_isolation
from barnabas.broker.partitions.delayed_fetch import DelayedFetch
from barnabas.broker.partitions.fetch_conversion import OldFormatPart, convert_parts
from barnabas.broker.printable import printable
from barnabas.broker.storage.segment.old_format_slice import OldFormatSlice
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.fetch import (
    READ_COMMITTED,
    AbortedTransaction,
    FetchPartition,
    FetchPartitionResult,
    FetchRequest,
    FetchResponse,
    FetchTopicResult,
)
from barnabas.protocol.messages.security.resources import Operation, ResourceType
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from concurrent.futures import Executor

    from barnabas.broker.network.deferred import Deferred
    from barnabas.broker.network.session import Session
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.partitions.registry import PartitionRegistry, TopicName
    from barnabas.broker.probes import BrokerProbes
    from barnabas.broker.security.access import SessionAccess
    from barnabas.broker.storage.files.file_records import FileSlice
    from barnabas.broker.storage.log.readable_log import ReadableLog

_WHOLE_REQUESTS = (-1, 0)
"""Session epochs of full requests: no session, or a new one."""

_RESPONSE_BYTES: Final = 16
_TOPIC_BYTES: Final = 18
_PARTITION_BYTES: Final = 40
"""Bytes of a response beside its records."""


class FetchHandler:
    """Serves Fetch."""

    def __init__(
        self,
        partitions: PartitionRegistry,
        probes: BrokerProbes,
        loop: asyncio.AbstractEventLoop,
        blocking_io: Executor,
        fetch_max_bytes: int,
        topic_name: TopicName,
        node_id: int,
    ) -> None:
        """`fetch_max_bytes`: fetch.max.bytes."""
        self._blocking_io = blocking_io
        self._partitions = partitions
        self._topic_name = topic_name
        self._node_id = node_id
        self._probes = probes
        self._probe = probes.api(ApiKey.FETCH.label)
        self._loop = loop
        self._fetch_max_bytes = fetch_max_bytes
        self._waiting: set[DelayedFetch] = set()
        self._draining = False

    def __call__(
        self, session: Session, request: FetchRequest
    ) -> FetchResponse | Deferred[FetchResponse | Exception] | Coroutine[None, None, FetchResponse]:
        """Read the partitions. Returns a Deferred for a long poll, a coroutine if old formats must be converted."""
        if request.session_epoch not in _WHOLE_REQUESTS:
            raise BrokerError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"there is no fetch session {request.session_id}")
        ensure_isolation(request.isolation)
        attempt = self._read(session, request)
        if attempt.old_format:
            return self._converted(session, request, attempt)
        min_bytes = min(request.min_bytes, attempt.max_bytes)
        if attempt.failed or attempt.size >= min_bytes or request.max_wait_ms == 0 or self._draining:
            return self._answer(session, request, attempt)
        if not attempt.partitions or attempt.has_later_segments:
            return self._answer(session, request, attempt)
        return self._wait(session, request, attempt, min_bytes)

    async def _converted(self, session: Session, request: FetchRequest, attempt: FetchAttempt) -> FetchResponse:
        """Convert old message formats on an executor and answer without waiting for min_bytes."""
        await self._loop.run_in_executor(self._blocking_io, attempt.convert_old_formats)
        return self._answer(session, request, attempt)

    def answer_all(self) -> None:
        """Answer every waiting fetch with the records available; none waits any more. For the broker's stop."""
        self._draining = True
        for waiting in list(self._waiting):
            waiting.finish()

    def _wait(
        self, session: Session, request: FetchRequest, attempt: FetchAttempt, min_bytes: int
    ) -> Deferred[FetchResponse | Exception]:
        waiting = DelayedFetch(
            attempt.partitions,
            missing_bytes=min_bytes - attempt.size,
            committed_only=attempt.committed_only,
            max_wait_seconds=request.max_wait_ms / 1000,
            loop=self._loop,
            read=lambda: self._read_again(session, request),
            ended=self._wait_ended,
        )
        self._waiting.add(waiting)
        self._probes.fetches_waiting += 1
        return waiting.response

    def _read_again(self, session: Session, request: FetchRequest) -> FetchResponse:
        if session.quota is not None:
            session.quota.resume()
        return self._answer(session, request, self._read(session, request))

    def _wait_ended(self, waiting: DelayedFetch) -> None:
        self._waiting.discard(waiting)
        self._probes.fetches_waiting -= 1

    def _read(self, session: Session, request: FetchRequest) -> FetchAttempt:
        committed_only = request.isolation == READ_COMMITTED
        max_bytes = min(request.max_bytes, self._fetch_max_bytes)
        if session.quota is not None and request.replica_id < 0:
            max_bytes = min(max_bytes, session.quota.fetch_budget())
        attempt = FetchAttempt(max_bytes, committed_only=committed_only)
        access = session.access
        may_read_all = request.replica_id >= 0 and is_cluster_allowed(session, Operation.CLUSTER_ACTION, ApiKey.FETCH)
        for topic in request.topics:
            name = topic.name if topic.topic_id is None else self._topic_name(topic.topic_id)
            results: list[FetchPartitionResult] = []
            for entry in topic.partitions:
                try:
                    if name is None:
                        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID, "unknown topic id")
                    if access is not None and not may_read_all:
                        _ensure_read_allowed(session, access, request, name)
                    results.append(self._read_one(session, name, entry, attempt, request))
                except BrokerError as error:
                    attempt.failed = True
                    results.append(self._refusal(name, entry, error))
            attempt.topics.append(FetchTopicResult(topic.name, results, topic.topic_id))
        return attempt

    def _read_one(
        self, session: Session, topic: str, entry: FetchPartition, attempt: FetchAttempt, request: FetchRequest
    ) -> FetchPartitionResult:
        partition = self._partitions.get(topic, entry.partition)
        if partition is None:
            raise self._partitions.refusal(topic, entry.partition)
        partition.ensure_current_epoch(entry.current_leader_epoch)
        if request.replica_id >= 0:
            raise _not_a_replica(request.replica_id, topic, entry)
        committed_only = attempt.committed_only
        attempt.partitions.append(partition)
        log = partition.log
        records = partition.read(
            entry.offset,
            min(entry.max_bytes, attempt.budget),
            committed_only=committed_only,
            at_least_one_batch=attempt.size == 0,
        )
        _count_records_out(session, topic, entry, partition, got_bytes=records is not None)
        result = FetchPartitionResult(
            entry.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted=_aborted(log, entry.offset, records) if committed_only and records is not None else [],
            records=records,
        )
        if records is not None:
            attempt.take(partition, entry.offset, result, records)
        return result

    def _refusal(self, topic: str | None, entry: FetchPartition, error: BrokerError) -> FetchPartitionResult:
        self._probe.count_error(error.code.name.lower())
        partition = None if topic is None else self._partitions.get(topic, entry.partition)
        if partition is None or error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            return FetchPartitionResult(entry.partition, error.code)
        if error.code == ErrorCode.FENCED_LEADER_EPOCH:
            leader = (self._node_id, partition.leader_epoch)
            return FetchPartitionResult(entry.partition, error.code, current_leader=leader)
        # A client whose offset is out of range needs the log's range to reset its position.
        log = partition.log
        return FetchPartitionResult(
            entry.partition, error.code, log.high_watermark, log.last_stable_offset, log.log_start_offset
        )

    @staticmethod
    def _answer(session: Session, request: FetchRequest, attempt: FetchAttempt) -> FetchResponse:
        attempt.convert_old_formats()  # left only after a wait, and then there is next to nothing to convert
        quota = session.quota
        if quota is not None and request.replica_id < 0 and quota.fetched(attempt.response_bytes):
            return FetchResponse([], attempt.committed_only)
        for partition, _, result in attempt.taken:
            partition.probe.bytes_out += 0 if result.records is None else result.records.size
        return FetchResponse(attempt.topics, attempt.committed_only)


class FetchAttempt:
    """One pass over the partitions of a request: the results so far and the remaining budget."""

    __slots__ = (
        "budget",
        "committed_only",
        "failed",
        "max_bytes",
        "old_format",
        "partitions",
        "size",
        "taken",
        "topics",
    )

    def __init__(self, budget: int, *, committed_only: bool) -> None:
        self.committed_only = committed_only
        self.max_bytes = budget
        self.budget = budget
        self.size = 0
        self.failed = False
        self.topics: list[FetchTopicResult] = []
        self.partitions: list[Partition] = []
        self.taken: list[tuple[Partition, int, FetchPartitionResult]] = []
        """Partition, offset and result of each partition with records."""
        self.old_format: list[OldFormatPart] = []
        """Parts that must be converted before they are sent."""

    def take(
        self, partition: Partition, offset: int, result: FetchPartitionResult, records: FileSlice | OldFormatSlice
    ) -> None:
        """Subtract the records' bytes from the budget, which only the first batch may exceed."""
        size = records.size
        self.size += size
        self.budget = max(0, self.budget - size)
        self.taken.append((partition, offset, result))
        if isinstance(records, OldFormatSlice):
            self.old_format.append(OldFormatPart(result, partition.log, offset, records))

    def convert_old_formats(self) -> None:
        """Convert parts in old message formats, within the limit of the request."""
        if self.old_format:
            parts, self.old_format = self.old_format, []
            convert_parts(parts, self.max_bytes - self.size + sum(part.records.size for part in parts))

    @property
    def response_bytes(self) -> int:
        """Size of the response, as a quota counts it: exact for versions with topic ids, of records without errors."""
        records = sum([0 if result.records is None else result.records.size for _, _, result in self.taken])
        partitions = sum([len(topic.partitions) for topic in self.topics])
        return _RESPONSE_BYTES + len(self.topics) * _TOPIC_BYTES + partitions * _PARTITION_BYTES + records

    @property
    def has_later_segments(self) -> bool:
        """Whether records were found in a segment that is not the last of its log."""
        return any(offset < partition.log.segments[-1].base_offset for partition, offset, _ in self.taken)


def _aborted(log: ReadableLog, offset: int, records: FileSlice | OldFormatSlice) -> list[AbortedTransaction]:
    """Return the aborted transactions in `records`, which a read_committed consumer skips. Raises BrokerError."""
    rows = log.aborted_transactions_of(offset, records)
    return [AbortedTransaction(row.producer_id, row.first_offset) for row in rows]


def _ensure_read_allowed(session: Session, access: SessionAccess, request: FetchRequest, topic: str) -> None:
    """Raise BrokerError TOPIC_AUTHORIZATION_FAILED."""
    if request.replica_id >= 0:  # a follower without CLUSTER_ACTION, whatever it may do with the topic
        raise denial(ResourceType.TOPIC)
    if not access.read_topic[topic]:
        ensure_allowed(session, Operation.READ, ResourceType.TOPIC, topic, ApiKey.FETCH)


def _not_a_replica(replica_id: int, topic: str, entry: FetchPartition) -> BrokerError:
    """Return Kafka's error for a follower without a replica: both codes make it retry, without harm."""
    has_epoch = entry.current_leader_epoch >= 0
    code = ErrorCode.UNKNOWN_LEADER_EPOCH if has_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER
    return BrokerError(code, f"node {replica_id} has no replica of {printable(topic)}-{entry.partition}")


def _count_records_out(
    session: Session, topic: str, entry: FetchPartition, partition: Partition, *, got_bytes: bool
) -> None:
    """Count the records of the previous fetch when the client fetches the offset after them.

    Counting them in the batches would mean reading data that sendfile never reads. A seek beyond the records that were
    sent is counted up to the log end offset of that time.
    """
    key = TopicPartition(topic, entry.partition)
    before = session.fetched_to.get(key)
    if before is not None:
        start, end = before
        if start < entry.offset:
            partition.probe.records_out += min(entry.offset, end) - start
    if got_bytes:
        session.fetched_to[key] = (entry.offset, partition.log.log_end_offset)
    elif before is not None:
        del session.fetched_to[key]
