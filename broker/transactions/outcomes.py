"""The second half of the state machine: how transactions end. See `transitions` for its rules.

Without an epoch per transaction (version below 2), EndTxn keeps the epoch, and a repeated request is one whose outcome
is the state's. With version 2 the decision bumps the epoch, so that late records of the transaction are refused:

    state            abort, repeated  abort, current epoch  commit, repeated  commit, current epoch
    Empty            fenced           ends, bumps           fenced            INVALID_TXN_STATE
    CompleteAbort    done             ends, bumps           INVALID_TXN_STATE INVALID_TXN_STATE
    CompleteCommit   INVALID_TXN_STATE ends, bumps          done              INVALID_TXN_STATE

A repeated request has the epoch before the current one, or the last epoch of the previous producer id. Source: Kafka's
TransactionCoordinator.endTransaction, TransactionMetadata.
"""

from __future__ import annotations

from typing import NoReturn

from barnabas.broker.printable import printable
from barnabas.broker.transactions.checks import (
    ProducerIdAndEpoch,
    ensure_current,
    ensure_new_id,
    fence,
    refuse_producer_id,
    refuse_while_ending,
)
from barnabas.broker.transactions.metadata import (
    EPOCH_PER_TRANSACTION,
    LAST_CLIENT_EPOCH,
    MAX_EPOCH,
    NO_EPOCH,
    NO_PARTITIONS,
    NO_PRODUCER_ID,
    TransactionMetadata,
)
from barnabas.broker.transactions.state import TransactionState
from barnabas.protocol.errors import BrokerError, ErrorCode

ONGOING = TransactionState.ONGOING
PREPARE_COMMIT, PREPARE_ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
COMPLETE_COMMIT, COMPLETE_ABORT = TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT


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
        return _end_with_same_epoch(ensure_current(current, producer), is_commit=is_commit, now_ms=now_ms)
    if current is None:
        raise BrokerError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "the transactional id is unknown")
    if current.state.is_prepared:
        refuse_while_ending(current)  # first, as in `add_partitions`
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
    producer_id, producer_epoch = next_producer(current)
    return current._replace(
        state=COMPLETE_COMMIT if current.state is PREPARE_COMMIT else COMPLETE_ABORT,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        previous_producer_id=current.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        partitions=NO_PARTITIONS,
        update_ms=now_ms,
    )


def next_producer(prepared: TransactionMetadata) -> ProducerIdAndEpoch:
    """Return the producer id and epoch after the completion of a prepared transaction."""
    if prepared.client_version >= EPOCH_PER_TRANSACTION and prepared.next_producer_id != NO_PRODUCER_ID:
        return ProducerIdAndEpoch(prepared.next_producer_id, 0)
    return ProducerIdAndEpoch(prepared.producer_id, prepared.producer_epoch)


def _end_with_same_epoch(current: TransactionMetadata, *, is_commit: bool, now_ms: int) -> TransactionMetadata | None:
    if current.state.is_prepared:
        refuse_while_ending(current)
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
        refuse_producer_id(current, producer.producer_id)
    state = current.state
    is_repeated = state in (COMPLETE_COMMIT, COMPLETE_ABORT) and (after_bump or after_rotation)
    if epoch != current.producer_epoch and not is_repeated:
        fence(current, f"epoch {epoch} is neither the current one, {current.producer_epoch}, nor a repeated request's")
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
        next_producer_id=ensure_new_id(new_producer_id) if current.is_epoch_exhausted else NO_PRODUCER_ID,
        start_ms=current.start_ms if current.state is ONGOING else now_ms,
        update_ms=now_ms,
        client_version=version,
    )


def _refuse_end(current: TransactionMetadata, is_commit: bool) -> NoReturn:
    wanted = "commit" if is_commit else "abort"
    raise BrokerError(
        ErrorCode.INVALID_TXN_STATE,
        f"{printable(current.transactional_id)} is in state {current.state.label}, which does not permit to {wanted}",
    )
