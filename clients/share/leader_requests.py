"""Requests to one broker of a share consumer, one after the other: fetches and acknowledgements of one share session.

Records are fetched only while the reader waits for some: a lock runs from the fetch on, so records that were fetched
ahead would keep other members from them. Acknowledgements travel with a fetch if nobody waits for their answer, because
the fetch may wait at the broker; otherwise by themselves.

A lost session (connection closed, broker restarted) releases everything that was acquired in it. So all its locks are
forgotten: the records come again, with higher delivery counts.
Source: Kafka's org.apache.kafka.clients.consumer.internals.ShareConsumeRequestManager.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol

from barnabas.clients.config import RECORD_LIMIT, ShareConsumerConfig
from barnabas.clients.errors import (
    BrokerConnectionError,
    BrokerTimeoutError,
    ClientError,
    ClosedError,
    LockLostError,
    RefusedError,
    reason_of,
)
from barnabas.clients.network.backoff import backoff_s
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.connection import Connection
from barnabas.clients.records import ShareRecord
from barnabas.clients.share.acknowledgements import (
    Acknowledgement,
    Pending,
    PendingAcknowledgements,
    Taken,
    TopicIdPartition,
    topics_of,
    without_renewals,
)
from barnabas.clients.share.acquired import read_acquired
from barnabas.clients.share.held_records import HeldRecord, HeldRecords
from barnabas.clients.share.share_session import ShareSession
from barnabas.protocol.errors import RETRIABLE_CODES, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.share import share_fetch
from barnabas.protocol.messages.share.share_acknowledge import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from barnabas.protocol.messages.share.share_fetch import (
    RENEW_FROM,
    ShareFetchPartition,
    ShareFetchRequest,
    ShareFetchResponse,
)
from barnabas.protocol.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

CLOSE_TIMEOUT_MS: Final = 5_000
"""Short, because closing is a courtesy: the broker releases everything when the connection is closed."""

_PURPOSE: Final = "share"
"""Of the connection: fetches wait at the broker, and heartbeats must not wait for them."""

_SESSION_ERRORS: Final = frozenset({ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH})
_MOVED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""Codes after which the locks at this broker are gone."""


class Reader(Protocol):
    """The consumer's side that takes records."""

    @property
    def wants_records(self) -> bool:
        """Whether somebody waits for records."""
        ...

    def name_of(self, topic_id: bytes) -> str | None:
        """The name of an assigned topic."""
        ...

    def arrived(self, records: Sequence[ShareRecord]) -> None:
        """Take records."""
        ...

    def failed(self, error: ClientError) -> None:
        """Raise the error with the next read."""
        ...

    def leaders_changed(self) -> None:
        """Load the metadata again."""
        ...


class LeaderRequests:
    """Owned by one share consumer. `begin` starts the task, `end` ends it."""

    def __init__(
        self,
        node_id: int,
        member_id: str,
        cluster: Cluster,
        config: ShareConsumerConfig,
        held: HeldRecords,
        reader: Reader,
    ) -> None:
        self.node_id = node_id
        self.partitions: frozenset[TopicIdPartition] = frozenset()
        """The assigned partitions that this broker leads. Call `wake` after a change."""
        self._member_id = member_id
        self._cluster = cluster
        self._config = config
        self._held = held
        self._reader = reader
        self._loop = asyncio.get_running_loop()
        self._session = ShareSession()
        self._connection: Connection | None = None
        self._pending = PendingAcknowledgements()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_fetching = False
        self._is_ending = False
        self._failures = 0

    # called by the consumer

    def begin(self) -> None:
        """Start the task."""
        self._task = asyncio.create_task(self._run(), name=f"barnabas-share-{self.node_id}")

    def wake(self) -> None:
        """Look for work: the reader waits, or the partitions changed."""
        self._wake.set()

    def acknowledge(self, pending: Pending) -> None:
        """Send an acknowledgement soon."""
        if self._is_ending:
            if pending.outcome is not None:
                pending.outcome.settle(ClosedError("the consumer is closed"))
            return
        self._pending.add(pending, self._loop.time())
        self._wake.set()

    async def end(self) -> None:
        """Send pending acknowledgements, and release everything else. Raises no ClientError."""
        if self._task is None:
            return
        self._is_ending = True
        self._wake.set()
        if self._is_fetching and self._pending.due_at is None:
            self._task.cancel()  # the broker releases what the fetch acquires when the connection is closed
        await asyncio.wait([self._task], timeout=CLOSE_TIMEOUT_MS / 1000)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._lose(ClosedError("the consumer is closed"), is_expected=True)

    # the task

    async def _run(self) -> None:
        while not self._is_ending:
            self._wake.clear()
            try:
                await self._step()
                self._failures = 0
                continue
            except ClosedError as error:
                self._lose(error, is_expected=True)
                return
            except RefusedError as error:
                await self._refused(error)
            except (BrokerConnectionError, BrokerTimeoutError) as error:
                self._lose(error)
                self._reader.leaders_changed()
            except ClientError as error:
                self._lose(error)
                self._reader.failed(error)
            except Exception as error:
                logger.exception("requests of a share consumer ended by an internal error, node=%d", self.node_id)
                self._lose(ClientError(f"an internal error: {error!r}"))
                self._reader.failed(ClientError(f"reading failed by an internal error: {error!r}"))
            await self._pause()
        await self._close_session()

    async def _step(self) -> None:
        """Do what is most urgent, or wait for something to do. Raises ClientError."""
        now = self._loop.time()
        due_at = self._pending.due_at
        wants = bool(self.partitions) and self._reader.wants_records
        if due_at is not None:
            may_travel = not self._pending.has_renewals and self._session.has(list(self._pending.partitions))
            if due_at <= now or (wants and not may_travel):
                await self._send_acknowledgements()
                return
        if wants:
            await self._fetch()
            return
        try:
            async with asyncio.timeout_at(due_at):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def _pause(self) -> None:
        """Wait before another attempt, longer after each failure."""
        self._failures += 1
        pause_s = backoff_s(self._failures, self._config.retry_backoff_ms, self._config.retry_backoff_max_ms)
        until = self._loop.time() + pause_s
        while not self._is_ending and self._loop.time() < until:
            self._wake.clear()
            try:
                async with asyncio.timeout_at(until):
                    await self._wake.wait()
            except TimeoutError:
                return

    async def _connected(self) -> Connection:
        connection = await self._cluster.connections.connect(self.node_id, _PURPOSE)
        if connection is not self._connection:
            if self._session.is_open:
                self._lose(BrokerConnectionError(f"{connection.address}: the connection was lost"))
            self._connection = connection
        return connection

    # fetches

    async def _fetch(self) -> None:
        config = self._config
        connection = await self._connected()
        taken: Taken = self._pending.take() if self._session.is_open else {}
        topics, forgotten = self._session.next_fetch(self.partitions, topics_of(taken))
        request = ShareFetchRequest(
            group_id=config.group,
            member_id=self._member_id,
            session_epoch=self._session.epoch,
            max_wait_ms=config.max_wait_ms,
            min_bytes=config.min_bytes,
            max_bytes=config.max_bytes,
            max_records=config.max_poll_records,
            batch_size=config.max_poll_records,
            topics=topics,
            forgotten=forgotten,
            acquire_mode=share_fetch.RECORD_LIMIT
            if config.acquire_mode == RECORD_LIMIT
            else share_fetch.BATCH_OPTIMIZED,
        )
        sent_at = self._loop.time()
        self._is_fetching = True
        try:
            answer: ShareFetchResponse = await connection.request(
                request, timeout_ms=config.request_timeout_ms + config.max_wait_ms
            )
        except BaseException as error:  # also when the task is cancelled
            self._settle_unknown(taken, error)
            raise
        finally:
            self._is_fetching = False
        self._ensure_served(answer.error, answer.message, taken)
        lock_s = answer.lock_timeout_ms / 1000
        errors = {
            (topic.topic_id, each.partition): (each.acknowledge_error, each.acknowledge_message)
            for topic in answer.topics
            for each in topic.partitions
        }
        repeats = self._settle(taken, errors, lock_until=sent_at + lock_s)
        refusals = [
            self._take_in(topic.topic_id, each, sent_at + lock_s)
            for topic in answer.topics
            for each in topic.partitions
        ]
        if any(refusals):
            self._reader.leaders_changed()
        if repeats or any(refusals):
            await self._pause()

    def _take_in(self, topic_id: bytes, fetched: ShareFetchPartition, deadline: float) -> bool:
        """Take a partition's records; return whether it was refused for now."""
        name = self._reader.name_of(topic_id)
        if name is None:
            return True
        topic_partition = TopicPartition(name, fetched.partition)
        if fetched.error is not ErrorCode.NONE:
            if fetched.error in RETRIABLE_CODES:
                return True
            if fetched.error is ErrorCode.UNKNOWN_SERVER_ERROR:  # as in Kafka's consumer: it may have the state later
                logger.warning("%s cannot be read for now: %s", topic_partition, fetched.message or "an internal error")
                return True
            self._reader.failed(RefusedError.of_partition(topic_partition, fetched.error, fetched.message))
            return False
        if not fetched.acquired:
            return False
        found = read_acquired(topic_partition, fetched, self._config)
        now = self._loop.time()
        for record in found.records:
            self._held.add(
                HeldRecord(topic_partition, topic_id, record.offset, record.delivery_count, deadline, self), now
            )
        for offsets, kind in ((found.gaps, Acknowledgement.GAP), (found.unread, Acknowledgement.RELEASE)):
            for offset, count in offsets:
                held = HeldRecord(topic_partition, topic_id, offset, count, deadline, self)
                self._pending.add(Pending(kind, held, None), now)
        if found.error is not None:
            self._reader.failed(found.error)
        self._reader.arrived(found.records)
        return False

    # acknowledgements

    async def _send_acknowledgements(self) -> None:
        connection = await self._connected()
        if not self._session.is_open:
            return  # it was lost, with what waited to be sent
        is_renewal = self._pending.has_renewals
        version = connection.version_of(ApiKey.SHARE_ACKNOWLEDGE)
        taken = self._pending.take()
        if is_renewal and (version is None or version < RENEW_FROM):
            taken = without_renewals(taken, RefusedError(ErrorCode.UNSUPPORTED_VERSION, "the broker renews no locks"))
            is_renewal = False
            if not taken:
                return
        await self._exchange(connection, taken, self._session.epoch, is_renewal=is_renewal)

    async def _exchange(self, connection: Connection, taken: Taken, epoch: int, *, is_renewal: bool) -> None:
        request = ShareAcknowledgeRequest(
            group_id=self._config.group,
            member_id=self._member_id,
            session_epoch=epoch,
            topics=topics_of(taken),
            is_renewal=is_renewal,
        )
        sent_at = self._loop.time()
        try:
            answer: ShareAcknowledgeResponse = await connection.request(
                request, timeout_ms=CLOSE_TIMEOUT_MS if self._is_ending else None
            )
        except BaseException as error:  # also when the task is cancelled
            self._settle_unknown(taken, error)
            raise
        self._ensure_served(answer.error, answer.message, taken)
        errors = {
            (topic.topic_id, each.partition): (each.error, each.message)
            for topic in answer.topics
            for each in topic.partitions
        }
        if self._settle(taken, errors, lock_until=sent_at + answer.lock_timeout_ms / 1000):
            await self._pause()

    async def _close_session(self) -> None:
        """Send what is pending, and close the session, so that other members get the rest at once."""
        if not self._session.is_open or self._connection is None or self._connection.closed:
            return
        is_renewal = self._pending.has_renewals
        try:
            await self._exchange(self._connection, self._pending.take(), share_fetch.FINAL_EPOCH, is_renewal=is_renewal)
        except ClientError as error:
            logger.info("share session not closed, the closed connection ends it, node=%d: %s", self.node_id, error)

    # answers

    def _ensure_served(self, code: ErrorCode, message: str | None, taken: Taken) -> None:
        """Count the session's epoch on. Raises RefusedError for an error of the whole request."""
        if code is ErrorCode.NONE:
            self._session.accepted()
            return
        error = RefusedError(code, f"share group {self._config.group!r}: {message or reason_of(code)}")
        for pending in _all(taken):
            if pending.outcome is not None:
                pending.outcome.settle(_lost(pending.held, error) if _is_passing(code) else error)
        raise error

    async def _refused(self, error: RefusedError) -> None:
        """Take an error of a whole request: as in Kafka's client, another session follows any."""
        was_open, connection = self._session.is_open, self._connection
        self._lose(error)
        if not _is_passing(error.code):
            self._reader.failed(error)
            return
        if error.code not in _SESSION_ERRORS:
            level = logging.WARNING if self._failures == 0 else logging.DEBUG
            logger.log(level, "share request refused, trying again, node=%d: %s", self.node_id, error)
        if was_open and error.code is not ErrorCode.SHARE_SESSION_NOT_FOUND and connection is not None:
            await self._release_all(connection)

    async def _release_all(self, connection: Connection) -> None:
        """Close the broker's session, whatever its epoch is: its locks are of no use any more."""
        request = ShareAcknowledgeRequest(
            group_id=self._config.group, member_id=self._member_id, session_epoch=share_fetch.FINAL_EPOCH, topics=[]
        )
        try:
            await connection.request(request, timeout_ms=CLOSE_TIMEOUT_MS)
        except ClientError as error:
            logger.info("share session not closed, node=%d: %s", self.node_id, error)

    def _settle(
        self,
        taken: Taken,
        errors: Mapping[TopicIdPartition, tuple[ErrorCode, str | None]],
        *,
        lock_until: float,
    ) -> bool:
        """Pass the answers on to those who wait. Return whether some are sent again: they could not be written."""
        now = self._loop.time()
        repeats = False
        for key, of_partition in taken.items():
            code, message = errors.get(key, (ErrorCode.UNKNOWN_SERVER_ERROR, "the broker left it out of its answer"))
            unheard = 0
            for pending in of_partition.values():
                held = pending.held
                if code is ErrorCode.NONE:
                    if pending.kind is Acknowledgement.RENEW:
                        self._held.renew(held, lock_until)
                    if pending.outcome is not None:
                        pending.outcome.settle(None)
                elif code in RETRIABLE_CODES and code not in _MOVED and now < held.deadline and not self._is_ending:
                    self._pending.add_again(pending, now)
                    repeats = True
                elif pending.outcome is not None:
                    error = RefusedError.of_partition(held.topic_partition, code, message)
                    is_lost = code is ErrorCode.INVALID_RECORD_STATE or code in _MOVED
                    pending.outcome.settle(_lost(held, error) if is_lost else error)
                else:
                    unheard += 1
            if unheard:
                logger.warning(
                    "acknowledgements refused, the records may be delivered again, group=%s topic_partition=%s "
                    "records=%d: %s %s",
                    self._config.group,
                    next(iter(of_partition.values())).held.topic_partition,
                    unheard,
                    code.name,
                    message or "",
                )
        return repeats

    def _settle_unknown(self, taken: Taken, error: BaseException) -> None:
        """Tell those who wait that their request had no answer."""
        reason = "the consumer is closed" if isinstance(error, asyncio.CancelledError) else error
        for pending in _all(taken):
            if pending.outcome is not None:
                pending.outcome.settle(
                    BrokerConnectionError(
                        f"{pending.held.topic_partition}: it is not known whether the record at offset "
                        f"{pending.held.offset} was acknowledged; it is delivered again otherwise: {reason}"
                    )
                )

    def _lose(self, reason: ClientError, *, is_expected: bool = False) -> None:
        """Forget the session with its locks."""
        taken = self._pending.take()
        lost = self._held.remove_of(self) + sum(map(len, taken.values()))
        for pending in _all(taken):
            if pending.outcome is not None:
                pending.outcome.settle(_lost(pending.held, reason))
        self._session.lost()
        if lost and not is_expected:
            logger.warning(
                "locks lost, their records will be delivered again, group=%s node=%d records=%d: %s",
                self._config.group,
                self.node_id,
                lost,
                reason,
            )


def _all(taken: Taken) -> Collection[Pending]:
    return [pending for of_partition in taken.values() for pending in of_partition.values()]


def _is_passing(code: ErrorCode) -> bool:
    return code in RETRIABLE_CODES or code in _SESSION_ERRORS or code is ErrorCode.SHARE_SESSION_LIMIT_REACHED


def _lost(held: HeldRecord, reason: ClientError) -> ClientError:
    return LockLostError(held.topic_partition, held.offset, str(reason))
