"""Fetch (key 1): stored batches of any number of partitions, waiting for at least `min_bytes` of them.

`max_bytes` (at most fetch.max.bytes) is spent on the partitions in the order of the request. The first one that has
records may exceed it, and its own `max_bytes`, by its first batch, so that a batch larger than both can be read. With
read_committed a response ends before the first open transaction, and lists the aborted transactions in it. The last
batch of a response may be incomplete, the first never is.

The client may READ each topic, a follower the whole cluster with CLUSTER_ACTION: TOPIC_AUTHORIZATION_FAILED for the
partitions, before any other error but UNKNOWN_TOPIC_ID. Differs from Kafka: a long poll is checked again when it is
answered, so a revoked permission holds for fetches that wait.

A client that sends the leader epoch of its last batch gets no records where its log is no prefix of this one, but the
epoch and offset up to which the two may agree (KIP-595); OFFSET_OUT_OF_RANGE for an epoch above all of the log's.

Errors per partition: OFFSET_OUT_OF_RANGE below the log start or beyond the log end; FENCED_LEADER_EPOCH or
UNKNOWN_LEADER_EPOCH for a leader epoch other than the current one; UNKNOWN_TOPIC_ID; and, because there are no
followers but a standby, Kafka's codes for a replica that is not assigned: NOT_LEADER_OR_FOLLOWER, or
UNKNOWN_LEADER_EPOCH if the follower sends an epoch; INCONSISTENT_TOPIC_ID for a topic that was created again during a
fetch session. For the whole request: the errors of fetch sessions (fetch_contexts.py); UNKNOWN_SERVER_ERROR, as in
Kafka, for an unknown isolation level.

A partition that is not read, because it does not exist or the client may not read it, does not end the wait of the
others, as in Kafka: the response would be the same again, and the client would ask without a pause. Answered without
waiting: an error of a read, a divergence, `max_wait_ms` 0, no partition that is read, and records of a segment that is
not the last, because a response takes records of one segment only and more follow.

Plain requests of Kafka's protocol are served by kernels/_fetch.pyx where it was built.

More than WIDE_PARTITIONS partitions are read, and kept in the session, in several turns of the event loop
(wide_fetch.py).

A client with a quota reads at most what the whole window of its quota allows, and above its quota an empty response.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, TypeVar

from barnabas.broker.handlers.authorization import denial, ensure_allowed, is_cluster_allowed
from barnabas.broker.handlers.data.fetch_attempt import FetchAttempt
from barnabas.broker.handlers.data.fetch_contexts import NO_SESSION_ID, FetchContexts, FullFetch, IncrementalFetch
from barnabas.broker.handlers.data.fetch_order import fetched_once, unread_last
from barnabas.broker.handlers.data.isolation import ensure_isolation
from barnabas.broker.handlers.data.session_wait import SessionFetchWait
from barnabas.broker.partitions.delayed_fetch import DelayedFetch
from barnabas.broker.printable import printable
from barnabas.broker.storage.segment.old_format_slice import OldFormatSlice
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.fetch import (
    NO_SESSION,
    READ_COMMITTED,
    STANDBY_REPLICA_ID,
    STANDBY_REPLICA_IDS,
    UNREAD_ERRORS,
    AbortedTransaction,
    EpochEnd,
    FetchPartition,
    FetchPartitionResult,
    FetchRequest,
    FetchResponse,
    FetchTopicResult,
)
from barnabas.protocol.messages.nodes import LeaderAndEpoch
from barnabas.protocol.messages.security.resources import Operation, ResourceType
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.wire.pieces import NO_RECORDS

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator, Sequence
    from concurrent.futures import Executor

    from barnabas.broker.handlers.data.fetch_session import FetchSession
    from barnabas.broker.handlers.data.kernels._fetch import FetchKernel
    from barnabas.broker.network.session import Session
    from barnabas.broker.partitions.late_response import Late, Read
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.partitions.registry import PartitionRegistry, TopicName
    from barnabas.broker.probes import BrokerProbes
    from barnabas.broker.security.access import SessionAccess
    from barnabas.broker.storage.files.file_records import FileSlice
    from barnabas.broker.storage.log.readable_log import ReadableLog

T = TypeVar("T")

Context = FullFetch | IncrementalFetch | None
"""The request's fetch session; None for a request without one."""

WIDE_PARTITIONS: Final = 1_000
"""A request that reads more partitions, and is not a standby's, is served in several turns. 1,000 take 3 to 8 ms."""


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
        contexts: FetchContexts,
    ) -> None:
        """`fetch_max_bytes`: fetch.max.bytes."""
        self._contexts = contexts
        self._blocking_io = blocking_io
        self._partitions = partitions
        self._topic_name = topic_name
        self._node_id = node_id
        self._probes = probes
        self._probe = probes.api(ApiKey.FETCH.label)
        self._loop = loop
        self.fetch_max_bytes = fetch_max_bytes
        self._waiting: set[DelayedFetch | SessionFetchWait] = set()
        self._draining = False
        self._kernel: FetchKernel | None = None

    def use_kernel(self, kernel: FetchKernel) -> None:
        """Leave plain requests to a kernel, whose waiting fetches `answer_all` answers too."""
        self._kernel = kernel
        kernel.use_sessions(self._contexts.cache, self.answer_in_session)

    def __call__(
        self, session: Session, request: FetchRequest
    ) -> FetchResponse | Late | Coroutine[Any, Any, FetchResponse | Late]:
        """Read the partitions. Returns a Deferred for a long poll.

        A coroutine if old formats must be converted, or the partitions are many.
        """
        context: Context = None
        request.topics = fetched_once(request.topics)
        if request.session_epoch != NO_SESSION or request.session_id != NO_SESSION_ID:
            begun = self._contexts.begin(session, request)
            if isinstance(begun, FetchResponse):
                return self._refused(begun)
            context = begun
        ensure_isolation(request.isolation)
        if _is_wide(request, context):
            from barnabas.broker.handlers.data.wide_fetch import WideFetch  # here: few clients need it

            return WideFetch(self, session, request, context).serve()
        attempt = self._read(session, request, context)
        request.forgotten = ()  # they have left the session; a wait may be long, and their names may have megabytes
        if attempt.old_format:
            return self._converted(session, request, context, attempt)
        if self.is_complete(request, context, attempt):
            return self._answer(session, request, context, attempt)
        missing_bytes = attempt.missing_bytes(request.min_bytes)
        return self.wait(request, context, attempt, missing_bytes, lambda: self._read_again(session, request, context))

    def is_complete(self, request: FetchRequest, context: Context, attempt: FetchAttempt) -> bool:
        """Return whether the request is answered without waiting."""
        return (
            attempt.failed
            or attempt.missing_bytes(request.min_bytes) <= 0
            or request.max_wait_ms <= 0
            or self._draining
            or attempt.diverged
            or attempt.has_later_segments
            or not (attempt.partitions or (isinstance(context, IncrementalFetch) and context.session.has_settled))
        )

    async def _converted(
        self, session: Session, request: FetchRequest, context: Context, attempt: FetchAttempt
    ) -> FetchResponse:
        """Convert old message formats on an executor and answer without waiting for min_bytes."""
        await self.convert(attempt)
        return self._answer(session, request, context, attempt)

    async def convert(self, attempt: FetchAttempt) -> None:
        """Convert what has an old message format."""
        await self._loop.run_in_executor(self._blocking_io, attempt.convert_old_formats)

    def answer_all(self) -> None:
        """Answer every waiting fetch with the records available; none waits any more. For the broker's stop."""
        self._draining = True
        for waiting in list(self._waiting):
            waiting.finish()
        if self._kernel is not None:
            self._kernel.answer_all()

    def answer_now(self, session: Session, request: FetchRequest) -> FetchResponse:
        """Answer a request that has waited in the kernel, in a case that it leaves to this handler."""
        return self._answer(session, request, None, self._read(session, request, None))

    def answer_in_session(
        self, fetch_session: FetchSession, epoch: int, session: Session, request: FetchRequest
    ) -> FetchResponse:
        """Answer like `answer_now` for an incremental request; `epoch` is the session's after this request."""
        context = self._contexts.resume(fetch_session, epoch)
        return self._answer(session, request, context, self._read(session, request, context))

    def wait(
        self, request: FetchRequest, context: Context, attempt: FetchAttempt, missing_bytes: int, read: Read
    ) -> Late:
        """Wait for `missing_bytes` to be appended, from now on, to the partitions that were read; answer by `read`."""
        waiting: DelayedFetch | SessionFetchWait
        if isinstance(context, IncrementalFetch):
            context.watch_pending(attempt.partitions)
            waiting = SessionFetchWait(
                context.session,
                missing_bytes=missing_bytes,
                max_wait_seconds=request.max_wait_ms / 1000,
                loop=self._loop,
                read=read,
                ended=self._wait_ended,
            )
        else:
            waiting = DelayedFetch(
                attempt.partitions,
                missing_bytes=missing_bytes,
                committed_only=attempt.committed_only,
                is_standby=request.follower_id == STANDBY_REPLICA_ID,
                max_wait_seconds=request.max_wait_ms / 1000,
                loop=self._loop,
                read=read,
                ended=self._wait_ended,
            )
        self._waiting.add(waiting)
        if request.follower_id == STANDBY_REPLICA_ID:
            self._partitions.replication.polls.add(waiting)
        self._probes.fetches_waiting += 1
        return waiting.response

    def _read_again(self, session: Session, request: FetchRequest, context: Context) -> FetchResponse:
        if session.quota is not None:
            session.quota.resume()
        return self._answer(session, request, context, self._read(session, request, context))

    def _wait_ended(self, waiting: DelayedFetch | SessionFetchWait) -> None:
        self._waiting.discard(waiting)
        self._partitions.replication.polls.discard(waiting)
        self._probes.fetches_waiting -= 1

    def _read(self, session: Session, request: FetchRequest, context: Context) -> FetchAttempt:
        attempt = self.attempt(session, request)
        _at_once(self.reading(session, request, context, attempt))
        return attempt

    def attempt(self, session: Session, request: FetchRequest) -> FetchAttempt:
        """Return the empty result of a request, with the bytes that it may read."""
        committed_only = request.isolation == READ_COMMITTED
        max_bytes = min(max(0, request.max_bytes), self.fetch_max_bytes)
        if session.quota is not None and request.follower_id < 0:
            max_bytes = min(max_bytes, session.quota.fetch_budget())
        return FetchAttempt(max_bytes, committed_only=committed_only)

    def reading(
        self, session: Session, request: FetchRequest, context: Context, attempt: FetchAttempt
    ) -> Generator[None, None, None]:
        """Read the partitions of a request, one in each step.

        Reads nothing if the session has received its next request.
        """
        if isinstance(context, IncrementalFetch) and not context.is_current:
            return  # it is refused
        access = session.access
        follower_id = request.follower_id
        may_read_all = follower_id >= 0 and is_cluster_allowed(session, Operation.CLUSTER_ACTION, ApiKey.FETCH)
        # Of a standby that compares batches the offsets say nothing: what it has there may differ.
        is_copying = follower_id == STANDBY_REPLICA_ID and (access is None or may_read_all)
        counts = is_copying and self._partitions.replication.fetching(session)
        for topic in context.topics() if isinstance(context, IncrementalFetch) else request.topics:
            topic_id = topic.topic_id if request.uses_topic_ids else None
            # A session's topic keeps the name that its id had.
            name = topic.name if topic.name or topic_id is None else self._topic_name(topic_id)
            results: list[FetchPartitionResult] = []
            for entry in topic.partitions:
                try:
                    if name is None:
                        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID, "unknown topic id")
                    if access is not None and not may_read_all:
                        _ensure_read_allowed(session, access, follower_id, name)
                    results.append(self._read_one(session, name, topic_id, entry, attempt, follower_id, counts))
                except BrokerError as error:
                    if error.code in UNREAD_ERRORS:
                        attempt.has_unread = True
                    else:
                        attempt.failed = True
                    results.append(self._refusal(request, name, entry, error))
                yield
            attempt.topics.append(FetchTopicResult(name=name or "", topic_id=topic.topic_id, partitions=results))
        if attempt.has_unread:
            yield
            attempt.topics = unread_last(attempt.topics)

    def _read_one(
        self,
        session: Session,
        topic: str,
        topic_id: bytes | None,
        entry: FetchPartition,
        attempt: FetchAttempt,
        follower_id: int,
        counts: bool,
    ) -> FetchPartitionResult:
        """Read one partition. `counts`: its offset is what the standby has."""
        partition = self._partitions.get(topic, entry.partition)
        if partition is None:
            raise self._partitions.refusal(topic, entry.partition)
        if topic_id is not None and topic_id != partition.topic_id:
            raise BrokerError(ErrorCode.INCONSISTENT_TOPIC_ID, f"the topic id of {printable(topic)} is another one now")
        if entry.current_leader_epoch >= 0:  # of the three APIs with one, Fetch alone leaves others below 0 unchecked
            partition.ensure_current_epoch(entry.current_leader_epoch)
        is_standby = follower_id in STANDBY_REPLICA_IDS
        if follower_id >= 0 and not is_standby:
            raise _not_a_replica(follower_id, topic, entry)
        committed_only = attempt.committed_only
        attempt.partitions.append(partition)
        log = partition.log
        diverging = log.diverging_epoch(entry.last_fetched_epoch, entry.offset)
        if diverging is not None:
            attempt.diverged = True
            return FetchPartitionResult(
                partition=entry.partition,
                high_watermark=log.high_watermark,
                last_stable_offset=log.last_stable_offset,
                log_start_offset=log.log_start_offset,
                diverging=EpochEnd(epoch=diverging.epoch, end_offset=diverging.start_offset),
            )
        records = partition.read(
            entry.offset,
            min(max(0, entry.max_bytes), attempt.budget),
            committed_only=committed_only,
            at_least_one_batch=attempt.size == 0,
            to_end=is_standby,
        )
        if counts:
            partition.standby_fetched(entry.offset)
        if is_standby and isinstance(records, OldFormatSlice):
            records = records.records  # a copy has the stored bytes, also of old formats
        _count_records_out(session, topic, entry, partition, got_bytes=records is not None)
        result = FetchPartitionResult(
            partition=entry.partition,
            # A standby compares it with its own end: it has to copy what consumers must not read yet.
            high_watermark=log.log_end_offset if is_standby else log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted=_aborted(log, entry.offset, records) if committed_only else None,
            records=NO_RECORDS if records is None else records,
        )
        if records is not None:
            attempt.take(partition, entry.offset, result, records)
        return result

    def _refusal(
        self, request: FetchRequest, topic: str | None, entry: FetchPartition, error: BrokerError
    ) -> FetchPartitionResult:
        code = error.code
        self._probe.count_error(code.name.lower())
        result = FetchPartitionResult(
            partition=entry.partition, error=code, aborted=() if code in UNREAD_ERRORS else None
        )
        partition = None if topic is None else self._partitions.get(topic, entry.partition)
        if partition is None or code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            return result
        if code == ErrorCode.FENCED_LEADER_EPOCH:
            if request.knows_leaders:
                result.current_leader = LeaderAndEpoch(node_id=self._node_id, epoch=partition.leader_epoch)
        elif request.wants_offsets_of_errors:
            log = partition.log
            result.high_watermark = log.high_watermark
            result.last_stable_offset = log.last_stable_offset
            result.log_start_offset = log.log_start_offset
        return result

    def _answer(
        self, session: Session, request: FetchRequest, context: Context, attempt: FetchAttempt
    ) -> FetchResponse:
        return _at_once(self.answering(session, request, context, attempt))

    def answering(
        self, session: Session, request: FetchRequest, context: Context, attempt: FetchAttempt
    ) -> Generator[None, None, FetchResponse]:
        """Build the response, and keep in the session what it says of each partition, one in each step."""
        attempt.convert_old_formats()  # left only after a small request's wait, and then there is next to nothing
        session_id = NO_SESSION_ID
        if isinstance(context, IncrementalFetch):
            session_id = context.session.session_id
            if not context.is_current:
                refusal = FetchResponse(topics=(), error=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session_id)
                return self._refused(refusal)
            attempt.topics = context.changed(attempt.topics)
        quota = session.quota
        if quota is not None and request.follower_id < 0 and quota.fetched(attempt.response_bytes):
            return FetchResponse(topics=(), session_id=session_id)
        for partition, _, result in attempt.taken:
            partition.probe.bytes_out += result.records.size
        if context is not None:
            session_id = yield from context.sending(attempt.topics)
        return FetchResponse(topics=attempt.topics, session_id=session_id)

    def _refused(self, refusal: FetchResponse) -> FetchResponse:
        self._probe.count_error(refusal.error.name.lower())
        return refusal


def _at_once(steps: Generator[None, None, T]) -> T:
    """Run all steps in this turn; return the generator's result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def _is_wide(request: FetchRequest, context: Context) -> bool:
    """Return whether the request reads so many partitions that other clients have their turns meanwhile.

    A standby's polls are known to the replication without a gap, so they are served in one turn.
    """
    if request.follower_id in STANDBY_REPLICA_IDS:
        return False
    if isinstance(context, IncrementalFetch):
        return len(context.session.pending) > WIDE_PARTITIONS
    return sum([len(topic.partitions) for topic in request.topics]) > WIDE_PARTITIONS


def _aborted(log: ReadableLog, offset: int, records: FileSlice | OldFormatSlice | None) -> Sequence[AbortedTransaction]:
    """Return the aborted transactions in `records`, which a read_committed consumer skips. Raises BrokerError."""
    if records is None:
        return ()
    rows = log.aborted_transactions_of(offset, records)
    return [AbortedTransaction(producer_id=row.producer_id, first_offset=row.first_offset) for row in rows]


def _ensure_read_allowed(session: Session, access: SessionAccess, follower_id: int, topic: str) -> None:
    """Raise BrokerError TOPIC_AUTHORIZATION_FAILED."""
    if follower_id >= 0:  # a follower without CLUSTER_ACTION, whatever it may do with the topic
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
