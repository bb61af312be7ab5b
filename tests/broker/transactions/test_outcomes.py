"""The state machine of transactional ids: how transactions end, with and without an epoch for each transaction."""

from __future__ import annotations

import pytest

from barnabas.broker.transactions import outcomes
from barnabas.broker.transactions.checks import ProducerIdAndEpoch, ProducerIdNeededError
from barnabas.broker.transactions.metadata import LAST_CLIENT_EPOCH, MAX_EPOCH, TransactionMetadata, ordered
from barnabas.broker.transactions.state import TransactionState
from barnabas.protocol.errors import BrokerError, ErrorCode

EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
PREPARE_COMMIT, PREPARE_ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
COMPLETE_COMMIT, COMPLETE_ABORT = TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT
P0 = ("t", 0)

CONCURRENT, INVALID_STATE = ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.INVALID_TXN_STATE
FENCED, UNKNOWN_ID = ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING
DONE = "done"


def state_of(state: TransactionState, *, epoch: int = 5, producer_id: int = 100) -> TransactionMetadata:
    """Return the state of an id whose previous producer id was 99."""
    return TransactionMetadata(
        "id",
        producer_id,
        epoch,
        60_000,
        state,
        ordered([P0]) if state in (ONGOING, PREPARE_COMMIT, PREPARE_ABORT) else ordered([]),
        update_ms=1_000,
        start_ms=-1 if state is EMPTY else 900,
        previous_producer_id=99,
        last_producer_epoch=4,
        client_version=2,
    )


def answer(
    current: TransactionMetadata | None,
    *,
    is_commit: bool,
    version: int,
    epoch: int = 5,
    producer_id: int = 100,
) -> TransactionState | ErrorCode | str:
    """Return the prepared state, the code of the refusal, or DONE for a repeated request."""
    try:
        found = outcomes.end(
            current,
            ProducerIdAndEpoch(producer_id, epoch),
            is_commit=is_commit,
            version=version,
            new_producer_id=None,
            now_ms=2_000,
        )
    except BrokerError as error:
        return error.code
    return DONE if found is None else found.state


@pytest.mark.parametrize(
    ("state", "aborts", "commits"),
    [
        (EMPTY, INVALID_STATE, INVALID_STATE),
        (ONGOING, PREPARE_ABORT, PREPARE_COMMIT),
        (PREPARE_COMMIT, CONCURRENT, CONCURRENT),
        (PREPARE_ABORT, CONCURRENT, CONCURRENT),
        (COMPLETE_COMMIT, INVALID_STATE, DONE),
        (COMPLETE_ABORT, DONE, INVALID_STATE),
    ],
)
@pytest.mark.parametrize("version", [0, 1])
def test_without_an_epoch_per_transaction_the_epoch_has_to_be_equal(
    state: TransactionState, aborts: object, commits: object, version: int
) -> None:
    current = state_of(state)
    assert answer(current, is_commit=False, version=version) is aborts
    assert answer(current, is_commit=True, version=version) is commits
    for epoch in (4, 6):
        assert answer(current, is_commit=True, version=version, epoch=epoch) is FENCED
    assert answer(current, is_commit=True, version=version, producer_id=101) is UNKNOWN_ID
    assert answer(None, is_commit=True, version=version) is UNKNOWN_ID


@pytest.mark.parametrize(
    ("state", "abort_again", "abort", "commit_again", "commit"),
    [
        (EMPTY, FENCED, PREPARE_ABORT, FENCED, INVALID_STATE),
        (ONGOING, FENCED, PREPARE_ABORT, FENCED, PREPARE_COMMIT),
        (COMPLETE_ABORT, DONE, PREPARE_ABORT, INVALID_STATE, INVALID_STATE),
        (COMPLETE_COMMIT, INVALID_STATE, PREPARE_ABORT, DONE, INVALID_STATE),
        (PREPARE_COMMIT, CONCURRENT, CONCURRENT, CONCURRENT, CONCURRENT),
        (PREPARE_ABORT, CONCURRENT, CONCURRENT, CONCURRENT, CONCURRENT),
    ],
)
def test_with_an_epoch_per_transaction_the_epoch_tells_a_repeated_request(
    state: TransactionState, abort_again: object, abort: object, commit_again: object, commit: object
) -> None:
    """The table of Kafka's TransactionCoordinator.endTransaction."""
    current = state_of(state)
    assert answer(current, is_commit=False, version=2, epoch=4) is abort_again
    assert answer(current, is_commit=False, version=2) is abort
    assert answer(current, is_commit=True, version=2, epoch=4) is commit_again
    assert answer(current, is_commit=True, version=2) is commit
    if not state.is_prepared:
        for epoch in (3, 6):
            assert answer(current, is_commit=True, version=2, epoch=epoch) is FENCED
        assert answer(current, is_commit=True, version=2, producer_id=101) is UNKNOWN_ID
    assert answer(None, is_commit=True, version=2) is UNKNOWN_ID


def ended(current: TransactionMetadata, *, version: int, new_producer_id: int | None = None) -> TransactionMetadata:
    producer = ProducerIdAndEpoch(current.producer_id, current.producer_epoch)
    found = outcomes.end(
        current, producer, is_commit=True, version=version, new_producer_id=new_producer_id, now_ms=2_000
    )
    assert found is not None
    return found


def test_a_commit_without_an_epoch_per_transaction_keeps_the_epoch() -> None:
    prepared = ended(state_of(ONGOING), version=0)
    assert (prepared.producer_epoch, prepared.last_producer_epoch, prepared.client_version) == (5, 4, 0)
    assert (prepared.start_ms, prepared.update_ms, list(prepared.partitions)) == (900, 2_000, [P0])
    completed = outcomes.complete(prepared, now_ms=3_000)
    assert (completed.state, completed.producer_epoch, list(completed.partitions)) == (COMPLETE_COMMIT, 5, [])
    assert (completed.start_ms, completed.update_ms) == (900, 3_000)


def test_a_commit_with_an_epoch_per_transaction_bumps_the_epoch() -> None:
    prepared = ended(state_of(ONGOING), version=2)
    assert (prepared.producer_epoch, prepared.last_producer_epoch, prepared.next_producer_id) == (6, 5, -1)
    completed = outcomes.complete(prepared, now_ms=3_000)
    assert (completed.producer_id, completed.producer_epoch, completed.client_version) == (100, 6, 2)


def test_the_last_epoch_of_a_producer_id_ends_with_a_new_one() -> None:
    """The markers have epoch 32767 of the old id; the client goes from 32766 to epoch 0 of the new one."""
    current = state_of(ONGOING, epoch=LAST_CLIENT_EPOCH)
    with pytest.raises(ProducerIdNeededError):
        ended(current, version=2)
    prepared = ended(current, version=2, new_producer_id=200)
    assert (prepared.producer_id, prepared.producer_epoch, prepared.next_producer_id) == (100, MAX_EPOCH, 200)
    completed = outcomes.complete(prepared, now_ms=3_000)
    assert (completed.producer_id, completed.producer_epoch, completed.previous_producer_id) == (200, 0, 100)
    assert (completed.next_producer_id, completed.last_producer_epoch) == (-1, LAST_CLIENT_EPOCH)
    again = {"version": 2, "producer_id": 100, "epoch": LAST_CLIENT_EPOCH}
    assert answer(completed, is_commit=True, **again) == DONE
    assert answer(completed, is_commit=False, **again) is INVALID_STATE
    assert answer(completed, is_commit=True, version=2, producer_id=100, epoch=LAST_CLIENT_EPOCH - 1) is UNKNOWN_ID


def test_an_abort_without_partitions_starts_and_ends_a_transaction() -> None:
    for state in (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT):
        prepared = outcomes.end(
            state_of(state),
            ProducerIdAndEpoch(100, 5),
            is_commit=False,
            version=2,
            new_producer_id=None,
            now_ms=2_000,
        )
        assert prepared is not None
        assert (prepared.state, prepared.producer_epoch, prepared.start_ms) == (PREPARE_ABORT, 6, 2_000)
        assert outcomes.complete(prepared, now_ms=3_000).state is COMPLETE_ABORT


@pytest.mark.parametrize(("version", "last_epoch", "client_version"), [(0, -1, 0), (1, -1, 0), (2, 5, 2)])
def test_the_coordinator_aborts_with_an_epoch_that_fences_the_producer(
    version: int, last_epoch: int, client_version: int
) -> None:
    found = outcomes.abort_and_fence(state_of(ONGOING), version=version, new_producer_id=None, now_ms=2_000)
    assert (found.state, found.producer_epoch, found.last_producer_epoch) == (PREPARE_ABORT, 6, last_epoch)
    assert (found.client_version, found.start_ms, list(found.partitions)) == (client_version, 900, [P0])


def test_a_fence_works_with_the_last_epochs() -> None:
    for epoch in (LAST_CLIENT_EPOCH, MAX_EPOCH):
        current = state_of(ONGOING, epoch=epoch)
        old = outcomes.abort_and_fence(current, version=0, new_producer_id=None, now_ms=2_000)
        assert (old.producer_epoch, old.next_producer_id) == (MAX_EPOCH, -1)
        with pytest.raises(ProducerIdNeededError):
            outcomes.abort_and_fence(current, version=2, new_producer_id=None, now_ms=2_000)
        new = outcomes.abort_and_fence(current, version=2, new_producer_id=200, now_ms=2_000)
        assert (new.producer_epoch, new.next_producer_id) == (MAX_EPOCH, 200)
        completed = outcomes.complete(new, now_ms=3_000)
        assert (completed.producer_id, completed.producer_epoch) == (200, 0)
