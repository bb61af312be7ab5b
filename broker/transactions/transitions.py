"""The state machine of a transactional id: pure functions from a state and a request to the next state.

Each returns the metadata to append, and raises BrokerError with the code that Kafka answers. Nothing waits here, and
Kafka's pending states do not exist: a returned state is in the log before the next request is served.

    Empty            AddPartitions -> Ongoing, abort (version 2) -> PrepareAbort
    Ongoing          commit -> PrepareCommit, abort -> PrepareAbort; InitProducerId and a timeout -> PrepareAbort,
                     with a bumped epoch that fences the producer
    PrepareCommit    all markers written -> CompleteCommit
    PrepareAbort     all markers written -> CompleteAbort
    Complete*        as Empty
    InitProducerId   leads from Empty and Complete* to Empty, with the next epoch or a new producer id

`version` is the client's transaction.version, at most the cluster's. With version 2, ending a transaction bumps the
epoch, so a repeated EndTxn is recognized by its lower epoch (KIP-890). Source: Kafka's TransactionCoordinator,
TransactionMetadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from barnabas.broker.printable import printable
from barnabas.broker.transactions.metadata import (
    EPOCH_PER_TRANSACTION,
    LAST_CLIENT_EPOCH,
    MAX_EPOCH,
    NO_EPOCH,
    NO_PARTITIONS,
    NO_PRODUCER_ID,
    NO_TIME,
    PartitionKey,
    TransactionMetadata,
    ordered,
)
from barnabas.broker.transactions.state import TransactionState
from barnabas.protocol.errors import BrokerError, ErrorCode

EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
PREPARE_COMMIT, PREPARE_ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
COMPLETE_COMMIT, COMPLETE_ABORT = TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT


class ProducerIdNeededError(Exception):
    """The transition needs a new producer id: call again with one."""


class TransactionOpenError(Exception):
    """InitProducerId found an open transaction: fence its producer, and let the client try again."""


class ProducerIdAndEpoch(NamedTuple):
    """A producer id and its epoch."""

    producer_id: int
    producer_epoch: int


def initialize(
    current: TransactionMetadata | None,
    transactional_id: str,
    *,
    timeout_ms: int,
    expected: ProducerIdAndEpoch | None,
    new_producer_id: int | None,
    now_ms: int,
) -> TransactionMetadata:
    """Return the state after InitProducerId. `expected`: the id and epoch that the producer has (KIP-360).

    Raises BrokerError PRODUCER_FENCED, CONCURRENT_TRANSACTIONS; TransactionOpenError; ProducerIdNeededError.
    """
    if current is None:
        new_id = _needed(new_producer_id)
        return TransactionMetadata(
            transactional_id, new_id, 0, timeout_ms, EMPTY, update_ms=now_ms, previous_producer_id=new_id
        )
    if current.state.is_prepared:
        _refuse_while_ending(current)
    if expected is not None and not _is_known_producer(current, expected):
        _fence(current, f"producer id {expected.producer_id} is not the current one, {current.producer_id}")
    if current.state is ONGOING:
        raise TransactionOpenError
    if current.is_epoch_exhausted and (expected is None or expected.producer_epoch == current.producer_epoch):
        return _initialized(
            current,
            _needed(new_producer_id),
            0,
            NO_EPOCH if expected is None else current.producer_epoch,
            timeout_ms,
            now_ms,
        )
    epoch, last_epoch = _bumped(current, expected)
    return _initialized(current, current.producer_id, epoch, last_epoch, timeout_ms, now_ms)


def add_partitions(
    current: TransactionMetadata | None,
    producer: ProducerIdAndEpoch,
    partitions: Sequence[PartitionKey],
    *,
    version: int,
    now_ms: int,
) -> TransactionMetadata | None:
    """Return the state with the partitions added; None if the transaction has them all.

    Raises BrokerError INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS.
    """
    if current is not None and current.state.is_prepared:
        # First: after a rotation the producer has the next id already, which would be refused for good below.
        _refuse_while_ending(current)
    current = _ensure_current(current, producer)
    if current.state is ONGOING:
        if all(partition in current.partitions for partition in partitions):
            return None
        start_ms = current.start_ms
    else:
        start_ms = now_ms
    return current._replace(
        state=ONGOING,
        partitions=ordered([*current.partitions, *partitions]),
        start_ms=start_ms,
        update_ms=now_ms,
        previous_producer_id=current.producer_id,
        client_version=version,
    )


def missing_partitions(
    current: TransactionMetadata | None, producer: ProducerIdAndEpoch, partitions: Sequence[PartitionKey]
) -> list[PartitionKey]:
    """Return the partitions that are not part of the producer's transaction.

    Raises BrokerError INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS.
    """
    current = _ensure_current(current, producer)
    if current.state.is_prepared:
        _refuse_while_ending(current)
    return [partition for partition in partitions if partition not in current.partitions]


def end(
    current: TransactionMetadata | None,
    producer: ProducerIdAndEpoch,
    *,
    is_commit: bool,
    version: int,
    new_producer_id: int | None,
    now_ms: int,
) -> TransactionMetadata | None:
    """Return the prepared state; None if the request repeats one that was carried out.

    Raises BrokerError INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE;
    ProducerIdNeededError.
    """
    if version < EPOCH_PER_TRANSACTION:
        return _end_with_same_epoch(_ensure_current(current, producer), is_commit=is_commit, now_ms=now_ms)
    if current is None:
        raise BrokerError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "the transactional id is unknown")
    if current.state.is_prepared:
        _refuse_while_ending(current)  # first, as in `add_partitions`
    return _end_with_next_epoch(
        current, producer, is_commit=is_commit, version=version, new_producer_id=new_producer_id, now_ms=now_ms
    )


def abort_and_fence(
    current: TransactionMetadata, *, version: int, new_producer_id: int | None, now_ms: int
) -> TransactionMetadata:
    """Return the prepared abort of an open transaction, with an epoch that fences its producer.

    `version` is the cluster's transaction.version. Raises ProducerIdNeededError.
    """
    assert current.state is ONGOING, f"{current.state.label} has no open transaction"
    if version >= EPOCH_PER_TRANSACTION:
        return _prepared_with_next_epoch(
            current, PREPARE_ABORT, version=version, new_producer_id=new_producer_id, now_ms=now_ms
        )
    return current._replace(
        state=PREPARE_ABORT,
        producer_epoch=min(current.producer_epoch + 1, MAX_EPOCH),
        last_producer_epoch=NO_EPOCH,
        previous_producer_id=current.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        update_ms=now_ms,
        client_version=0,
    )


def complete(current: TransactionMetadata, *, now_ms: int) -> TransactionMetadata:
    """Return the state after all markers of a prepared transaction were written."""
    assert current.state.is_prepared, f"{current.state.label} is not prepared"
    rotates = current.client_version >= EPOCH_PER_TRANSACTION and current.next_producer_id != NO_PRODUCER_ID
    return current._replace(
        state=COMPLETE_COMMIT if current.state is PREPARE_COMMIT else COMPLETE_ABORT,
        producer_id=current.next_producer_id if rotates else current.producer_id,
        producer_epoch=0 if rotates else current.producer_epoch,
        previous_producer_id=current.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        partitions=NO_PARTITIONS,
        update_ms=now_ms,
    )


def has_timed_out(current: TransactionMetadata, now_ms: int) -> bool:
    """Return whether the coordinator should abort the transaction."""
    return current.state is ONGOING and not current.has_no_timeout and current.start_ms + current.timeout_ms < now_ms


def has_expired(current: TransactionMetadata, now_ms: int, expiration_ms: int) -> bool:
    """Return whether the transactional id has been unused for so long that it is forgotten."""
    return current.state.has_no_transaction and current.update_ms <= now_ms - expiration_ms


def _ensure_current(current: TransactionMetadata | None, producer: ProducerIdAndEpoch) -> TransactionMetadata:
    if current is None:
        raise BrokerError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "the transactional id is unknown")
    if current.producer_id != producer.producer_id:
        _refuse_producer_id(current, producer.producer_id)
    if current.producer_epoch != producer.producer_epoch:
        _fence(current, f"epoch {producer.producer_epoch} is not the current one, {current.producer_epoch}")
    return current


def _is_known_producer(current: TransactionMetadata, expected: ProducerIdAndEpoch) -> bool:
    """Return whether the request may be of the current producer.

    The previous producer id with an exhausted epoch is that of a repeated request whose answer was lost.
    """
    return expected.producer_id == current.producer_id or (
        expected.producer_id == current.previous_producer_id and expected.producer_epoch >= LAST_CLIENT_EPOCH
    )


def _bumped(current: TransactionMetadata, expected: ProducerIdAndEpoch | None) -> tuple[int, int]:
    """Return the epoch after InitProducerId and the last one."""
    epoch = current.producer_epoch
    if expected is None:
        next_epochs = epoch + 1, NO_EPOCH
    elif expected.producer_epoch == epoch:
        next_epochs = epoch + 1, epoch
    elif expected.producer_epoch == current.last_producer_epoch:
        return epoch, current.last_producer_epoch  # a repeated request: only the answer was lost
    else:
        _fence(current, f"epoch {expected.producer_epoch} is not the current one, {epoch}")
    if current.is_epoch_exhausted:
        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, f"producer id {current.producer_id} has no further epoch")
    return next_epochs


def _initialized(
    current: TransactionMetadata, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int
) -> TransactionMetadata:
    return current._replace(
        state=EMPTY,
        producer_id=producer_id,
        producer_epoch=epoch,
        last_producer_epoch=last_epoch,
        previous_producer_id=current.producer_id,
        timeout_ms=timeout_ms,
        partitions=NO_PARTITIONS,
        start_ms=NO_TIME,
        update_ms=now_ms,
    )


def _end_with_same_epoch(current: TransactionMetadata, *, is_commit: bool, now_ms: int) -> TransactionMetadata | None:
    if current.state.is_prepared:
        _refuse_while_ending(current)
    if current.state is ONGOING:
        return current._replace(
            state=PREPARE_COMMIT if is_commit else PREPARE_ABORT,
            previous_producer_id=current.producer_id,
            next_producer_id=NO_PRODUCER_ID,
            update_ms=now_ms,
            client_version=0,
        )
    if current.state is (COMPLETE_COMMIT if is_commit else COMPLETE_ABORT):
        return None
    return _refuse_end(current, is_commit)


def _end_with_next_epoch(
    current: TransactionMetadata,
    producer: ProducerIdAndEpoch,
    *,
    is_commit: bool,
    version: int,
    new_producer_id: int | None,
    now_ms: int,
) -> TransactionMetadata | None:
    epoch = producer.producer_epoch
    after_rotation = (
        current.previous_producer_id == producer.producer_id
        and epoch == LAST_CLIENT_EPOCH
        and current.producer_epoch == 0
    )
    after_bump = current.producer_epoch == epoch + 1
    if current.producer_id != producer.producer_id and not after_rotation:
        _refuse_producer_id(current, producer.producer_id)
    state = current.state
    is_repeated = state in (COMPLETE_COMMIT, COMPLETE_ABORT) and (after_bump or after_rotation)
    if epoch != current.producer_epoch and not is_repeated:
        _fence(current, f"epoch {epoch} is neither the current one, {current.producer_epoch}, nor a repeated request's")
    if is_repeated:
        if state is (COMPLETE_COMMIT if is_commit else COMPLETE_ABORT):
            return None
        _refuse_end(current, is_commit)
    if state is ONGOING or (state.has_no_transaction and not is_commit):
        return _prepared_with_next_epoch(
            current,
            PREPARE_COMMIT if is_commit else PREPARE_ABORT,
            version=version,
            new_producer_id=new_producer_id,
            now_ms=now_ms,
        )
    return _refuse_end(current, is_commit)


def _prepared_with_next_epoch(
    current: TransactionMetadata,
    state: TransactionState,
    *,
    version: int,
    new_producer_id: int | None,
    now_ms: int,
) -> TransactionMetadata:
    """Return the prepared state; the producer continues with the next epoch, or with a new id if it has none.

    A client that does not know whether its transaction was opened may abort it without partitions.
    """
    if current.producer_epoch == MAX_EPOCH and state is not PREPARE_ABORT:
        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, f"producer id {current.producer_id} has no further epoch")
    return current._replace(
        state=state,
        producer_epoch=min(current.producer_epoch + 1, MAX_EPOCH),
        last_producer_epoch=current.producer_epoch,
        previous_producer_id=current.producer_id,
        next_producer_id=_needed(new_producer_id) if current.is_epoch_exhausted else NO_PRODUCER_ID,
        start_ms=current.start_ms if current.state is ONGOING else now_ms,
        update_ms=now_ms,
        client_version=version,
    )


def _needed(new_producer_id: int | None) -> int:
    if new_producer_id is None:
        raise ProducerIdNeededError
    return new_producer_id


def _refuse_end(current: TransactionMetadata, is_commit: bool) -> NoReturn:
    wanted = "commit" if is_commit else "abort"
    raise BrokerError(
        ErrorCode.INVALID_TXN_STATE,
        f"{printable(current.transactional_id)} is in state {current.state.label}, which does not permit to {wanted}",
    )


def _refuse_while_ending(current: TransactionMetadata) -> NoReturn:
    raise BrokerError(
        ErrorCode.CONCURRENT_TRANSACTIONS,
        f"the last transaction of {printable(current.transactional_id)} is being ended, state={current.state.label}",
    )


def _refuse_producer_id(current: TransactionMetadata, producer_id: int) -> NoReturn:
    raise BrokerError(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        f"producer id {producer_id} is not that of {printable(current.transactional_id)}, {current.producer_id}",
    )


def _fence(current: TransactionMetadata, reason: str) -> NoReturn:
    raise BrokerError(ErrorCode.PRODUCER_FENCED, f"{printable(current.transactional_id)}: {reason}")
