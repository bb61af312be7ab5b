"""Transactions of one producer: beginning, committing and aborting them, and committing offsets in them.

    async with producer.transaction():
        await producer.send("totals", b"7")
        await producer.send_offsets_to_transaction(consumer)

A producer has one transaction at a time. Records sent in it, to any partitions, and the offsets become visible to
read_committed readers together, or never. A record that is not delivered, or offsets that are refused, make the
transaction abort-only; the next one may succeed. When the coordinator has a newer producer for the transactional id,
every call raises ProducerFencedError. A transaction that the coordinator has aborted because of its timeout is
abort-only, or (below transaction.version 2) its producer is fenced.

A commit or abort whose answer is lost is repeated for api_timeout_ms, also over a restart of the broker, and gives the
same result. Source: Kafka's TransactionManager.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from barnabas.clients.config import ProducerConfig
from barnabas.clients.errors import (
    BrokerConnectionError,
    BrokerTimeoutError,
    ClientError,
    ProducerFencedError,
    RefusedError,
    TransactionAbortableError,
    TransactionAbortedError,
)
from barnabas.clients.group_offsets import CommittedOffset
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.producer.prepared import PreparedTransaction
from barnabas.clients.producer.sender import Sender
from barnabas.clients.producer.transaction_requests import ProducerEpoch, TransactionRequests
from barnabas.clients.producer.transaction_state import FENCED_CODES, Phase, TransactionState
from barnabas.clients.producer.transactional_sequences import TransactionalSequences
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.clients.consumer.consumer import Consumer

logger = logging.getLogger(__name__)

_ABORTABLE_CODES = frozenset(
    {ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_TXN_STATE}
)
"""Refusals of a commit after which the producer can go on.

INVALID_TXN_STATE is final in Kafka's client. It means that the transaction was not committed, and is what the
coordinator answers after it has aborted the transaction because of its timeout (transaction.version 2).
"""
_ABORTABLE_OFFSET_CODES = FENCED_CODES | {ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE}
"""Refusals of offsets whose transaction may be over, by its timeout or a newer producer: an abort finds out which.

All but the last are final in Kafka's client.
"""
_FATAL_OFFSET_CODES = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)


class Transactions:
    """Owned by one producer. `start` it with the producer's sender before the first transaction."""

    def __init__(self, cluster: Cluster, config: ProducerConfig, transactional_id: str) -> None:
        self.state = TransactionState(transactional_id)
        self._requests = TransactionRequests(cluster, config, transactional_id)
        self.sequences = TransactionalSequences(cluster, config, self.state, self._requests)
        self._sender: Sender | None = None
        self._lock = asyncio.Lock()  # requests of one transaction are sent in the order of the calls
        self._began_at = 0.0

    async def start(self, sender: Sender) -> None:
        """Fence earlier producers with this transactional id, and abort the transaction that one left open.

        Raises ClientError.
        """
        self._sender = sender
        try:
            current = await self._requests.initialize(None)
            self.state.initialized(*current, adds_first=self._requests.adds_first)
        except RefusedError as error:
            if error.retriable:
                raise
            raise self.state.refused(error.code, error.message) from error
        state = self.state
        logger.info(
            "transactional_id=%s producer_id=%d epoch=%d", state.transactional_id, state.producer_id, state.epoch
        )

    def ensure_may_send(self) -> None:
        """Raises ClientError unless a transaction is open that may still be committed."""
        self.state.ensure_open("send")

    async def begin(self) -> None:
        """Begin a transaction. Finishes an abort first whose answer did not arrive. Raises ClientError."""
        async with self._lock:
            if self.state.phase is Phase.ABORTING:
                await self._end(commit=False)
            self.state.begin()
            self._began_at = asyncio.get_running_loop().time()

    async def commit(self) -> None:
        """Deliver the records and commit. See Producer.commit_transaction."""
        async with self._lock:
            if self.state.phase is Phase.PREPARED:
                self.state.phase = Phase.COMMITTING
            elif self.state.phase is not Phase.COMMITTING:
                await self._flush(Phase.COMMITTING)
            await self._end(commit=True)

    async def prepare(self) -> PreparedTransaction | None:
        """Deliver the records, and leave the transaction open. See Producer.prepare_transaction."""
        async with self._lock:
            await self._flush(Phase.PREPARED)
            if self.state.reached_broker:
                return PreparedTransaction(self.state.transactional_id, *self._current)
            self.state.ended(*self._current, adds_first=self._requests.adds_first)
            return None

    async def abort(self) -> None:
        """Abort. See Producer.abort_transaction."""
        async with self._lock:
            self.state.begin_abort()
            await self._end(commit=False)

    async def send_offsets(
        self, consumer: Consumer, offsets: Mapping[TopicPartition, int] | None
    ) -> dict[TopicPartition, int]:
        """Make offsets of the consumer's group a part of the transaction. See Producer.send_offsets_to_transaction."""
        if consumer.config.auto_commit:
            raise ClientError(
                "the consumer commits by itself, outside of the transaction: use ConsumerConfig(auto_commit=False)"
            )
        committed = consumer.positions if offsets is None else {TopicPartition(*key): at for key, at in offsets.items()}
        for partition, offset in committed.items():
            if offset < 0:
                raise ValueError(f"{partition}: offset {offset} is negative")
        async with self._lock:
            self.state.ensure_open("send offsets")
            await self._send_offsets(consumer, committed)
        return committed

    async def abort_after(self, error: BaseException) -> None:
        """Abort the open transaction because of `error`, which the caller raises. Does nothing without one.

        Raises ProducerFencedError instead of a client's error if this producer was fenced. Other failures of the abort
        are logged and added to `error` as a note: the coordinator aborts the transaction when it times out.
        """
        if not self.state.is_open:
            return
        try:
            await self.abort()
        except ClientError as failure:
            if isinstance(failure, ProducerFencedError) and isinstance(error, ClientError):
                raise failure from error
            logger.warning("the transaction was not aborted: %s", failure)
            error.add_note(f"the transaction was not aborted: {failure}")

    async def close(self) -> None:
        """Abort an open transaction, or finish a commit or abort whose answer did not arrive. Raises no ClientError.

        A prepared transaction stays.
        """
        phase = self.state.phase
        try:
            if self.state.is_open or phase is Phase.ABORTING:
                logger.info("aborting the open transaction, because the producer is closed")
                await self.abort()
            elif phase is Phase.COMMITTING:
                await self.commit()
        except ClientError as error:
            outcome = "committed" if phase is Phase.COMMITTING else "aborted"
            logger.warning("it is not known whether the last transaction was %s: %s", outcome, error)

    async def _send_offsets(self, consumer: Consumer, offsets: Mapping[TopicPartition, int]) -> None:
        state = self.state
        if consumer.revoked_at >= self._began_at:
            state.fail(
                "the consumer gave partitions up after the transaction began, so their positions are not known "
                "any more; read before the transaction begins, not inside",
                in_doubt=False,
            )
            state.ensure_open("send offsets")
        committed = {partition: CommittedOffset(offset) for partition, offset in offsets.items()}
        try:
            group = consumer.group_metadata()
            if not offsets:
                return
            state.reached_broker = True
            if state.adds_first and group.group not in state.added:
                await self._requests.add_group(self._current, group.group)
                state.added.add(group.group)
            await self._requests.commit_offsets(self._current, group, committed, adds_first=state.adds_first)
        except BaseException as error:
            if isinstance(error, RefusedError) and error.code in _FATAL_OFFSET_CODES:
                raise state.refused(error.code, error.message) from error
            state.fail(error, in_doubt=True)
            if isinstance(error, RefusedError) and error.code in _ABORTABLE_OFFSET_CODES:
                raise TransactionAbortableError(state.transactional_id, error) from error
            raise

    async def _flush(self, following: Phase) -> None:
        self.state.begin_commit()
        try:
            await self._open_sender().flush()
        finally:
            self.state.reopen()
        self.state.flushed(following)

    async def _end(self, *, commit: bool) -> None:
        """Send the decision, and get the next transaction's epoch. Repeatable while the phase stays the same."""
        state = self.state
        if not commit:
            sender = self._open_sender()
            sender.fail_unsent(TransactionAbortedError(state.transactional_id))
            await sender.flush()  # only batches in flight are left
            await sender.settled()
        current = following = self._current
        try:
            if state.reached_broker:
                following = await self._send_end(current, commit=commit)
            # The rules of version 2 begin in a new epoch, so that no late request follows both.
            changes_rules = state.adds_first and not self._requests.adds_first
            if (state.in_doubt or changes_rules) and following == current:
                following = await self._requests.initialize(current)
        except (BrokerConnectionError, BrokerTimeoutError) as error:
            raise type(error)(self._unfinished("commit" if commit else "abort", error)) from error
        except RefusedError as error:
            if error.retriable:
                raise RefusedError(error.code, self._unfinished("commit" if commit else "abort", error)) from error
            if commit and error.code in _ABORTABLE_CODES:
                state.fail(error, in_doubt=error.code is not ErrorCode.TRANSACTION_ABORTABLE)
                raise TransactionAbortableError(state.transactional_id, error) from error
            raise state.refused(error.code, error.message) from error
        state.ended(*following, adds_first=self._requests.adds_first)

    async def _send_end(self, current: ProducerEpoch, *, commit: bool) -> ProducerEpoch:
        try:
            return await self._requests.end(current, commit=commit, adds_first=self.state.adds_first)
        except RefusedError as error:
            if commit or not self.state.in_doubt or error.code is not ErrorCode.INVALID_TXN_STATE:
                raise
            # No request of this transaction has arrived, so there is nothing to abort. The new epoch refuses late ones.
            return current

    @property
    def _current(self) -> ProducerEpoch:
        return ProducerEpoch(self.state.producer_id, self.state.epoch)

    def _open_sender(self) -> Sender:
        if self._sender is None:
            raise self.state.misuse("end a transaction", "start the producer first")
        return self._sender

    def _unfinished(self, action: str, error: ClientError) -> str:
        return (
            f"transactional id {self.state.transactional_id!r}: it is not known whether the {action} was carried out; "
            f"call {action}_transaction() again: {error}"
        )


class TransactionBlock:
    """The body of `async with producer.transaction()`: begins, then commits, or aborts after an exception."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    async def __aenter__(self) -> None:
        await self._transactions.begin()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        transactions = self._transactions
        if error is not None:
            await transactions.abort_after(error)
        elif transactions.state.phase not in (Phase.READY, Phase.PREPARED):  # the body may end or prepare it itself
            try:
                await transactions.commit()
            except BaseException as failure:
                await transactions.abort_after(failure)
                raise
