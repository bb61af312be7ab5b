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

`version` is the client's transaction.version, at most the cluster's. `outcomes` has the transitions that end a
transaction. Source: Kafka's TransactionCoordinator,
TransactionMetadata.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.broker.transactions.checks import (
    ProducerIdAndEpoch,
    ensure_current,
    ensure_new_id,
    fence,
    refuse_while_ending,
)
from barnabas.broker.transactions.metadata import (
    LAST_CLIENT_EPOCH,
    NO_EPOCH,
    NO_PARTITIONS,
    NO_TIME,
    PartitionKey,
    TransactionMetadata,
    ordered,
)
from barnabas.broker.transactions.state import TransactionState
from barnabas.protocol.errors import BrokerError, ErrorCode

EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING


class TransactionOpenError(Exception):
    """InitProducerId found an open transaction: fence its producer, and let the client try again."""


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
        own_id = ensure_new_id(new_producer_id)
        return TransactionMetadata(
            transactional_id, own_id, 0, timeout_ms, EMPTY, update_ms=now_ms, previous_producer_id=own_id
        )
    if current.state.is_prepared:
        refuse_while_ending(current)
    if expected is not None and not _is_known_producer(current, expected):
        fence(current, f"producer id {expected.producer_id} is not the current one, {current.producer_id}")
    if current.state is ONGOING:
        raise TransactionOpenError
    if current.is_epoch_exhausted and (expected is None or expected.producer_epoch == current.producer_epoch):
        return _initialized(
            current,
            ensure_new_id(new_producer_id),
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
        refuse_while_ending(current)
    current = ensure_current(current, producer)
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
    current = ensure_current(current, producer)
    if current.state.is_prepared:
        refuse_while_ending(current)
    return [partition for partition in partitions if partition not in current.partitions]


def has_timed_out(current: TransactionMetadata, now_ms: int) -> bool:
    """Return whether the coordinator should abort the transaction."""
    return current.state is ONGOING and not current.has_no_timeout and current.start_ms + current.timeout_ms < now_ms


def has_expired(current: TransactionMetadata, now_ms: int, expiration_ms: int) -> bool:
    """Return whether the transactional id has been unused for so long that it is forgotten."""
    return current.state.has_no_transaction and current.update_ms <= now_ms - expiration_ms


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
        fence(current, f"epoch {expected.producer_epoch} is not the current one, {epoch}")
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
