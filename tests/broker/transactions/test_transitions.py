"""The state machine of transactional ids: every answer to InitProducerId and AddPartitionsToTxn, timeouts, expiry."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.broker.transactions import transitions
from barnabas.broker.transactions.checks import ProducerIdAndEpoch, ProducerIdNeededError
from barnabas.broker.transactions.metadata import (
    LAST_CLIENT_EPOCH,
    MAX_EPOCH,
    NO_TIMEOUT_MS,
    TransactionMetadata,
    by_topic,
    ordered,
)
from barnabas.broker.transactions.state import TransactionState
from barnabas.broker.transactions.transitions import TransactionOpenError
from barnabas.protocol.errors import BrokerError, ErrorCode

EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
PREPARED = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
COMPLETED = (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
P0, P1 = ("t", 0), ("t", 1)


def state_of(state: TransactionState = EMPTY, *, epoch: int = 5, last_epoch: int = 4) -> TransactionMetadata:
    """Return the state of an id with producer id 100 and previous producer id 99."""
    is_open = state is ONGOING or state in PREPARED
    return TransactionMetadata(
        "id",
        100,
        epoch,
        60_000,
        state,
        ordered([P0]) if is_open else ordered([]),
        update_ms=1_000,
        start_ms=900 if state is not EMPTY else -1,
        previous_producer_id=99,
        last_producer_epoch=last_epoch,
    )


def initialized(
    current: TransactionMetadata | None,
    expected: tuple[int, int] | None = None,
    new_producer_id: int | None = None,
) -> TransactionMetadata:
    return transitions.initialize(
        current,
        "id",
        timeout_ms=30_000,
        expected=None if expected is None else ProducerIdAndEpoch(*expected),
        new_producer_id=new_producer_id,
        now_ms=2_000,
    )


def code_of(call: Callable[..., object], *arguments: object) -> ErrorCode:
    with pytest.raises(BrokerError) as caught:
        call(*arguments)
    return caught.value.code


def test_an_unknown_id_gets_a_new_producer_id_and_epoch_0() -> None:
    with pytest.raises(ProducerIdNeededError):
        initialized(None)
    for expected in (None, (7, 3)):  # a producer whose id the coordinator forgot
        found = initialized(None, expected, new_producer_id=100)
        assert found == TransactionMetadata(
            "id", 100, 0, 30_000, EMPTY, update_ms=2_000, previous_producer_id=100, last_producer_epoch=-1
        )


@pytest.mark.parametrize("state", [EMPTY, *COMPLETED])
def test_a_new_instance_gets_the_next_epoch(state: TransactionState) -> None:
    found = initialized(state_of(state))
    assert (found.producer_id, found.producer_epoch, found.last_producer_epoch) == (100, 6, -1)
    assert (found.state, found.timeout_ms, found.start_ms, found.update_ms) == (EMPTY, 30_000, -1, 2_000)
    assert found.previous_producer_id == 100


def test_a_producer_that_continues_after_an_error_gets_the_next_epoch() -> None:
    found = initialized(state_of(), (100, 5))
    assert (found.producer_epoch, found.last_producer_epoch) == (6, 5)


def test_a_repeated_request_gets_the_epoch_of_the_first_one() -> None:
    first = initialized(state_of(), (100, 5))
    again = initialized(first, (100, 5))
    assert (again.producer_epoch, again.last_producer_epoch) == (6, 5)


def test_a_new_instance_keeps_an_older_one_from_repeating_its_request() -> None:
    after_new_instance = initialized(initialized(state_of(), (100, 5)))
    assert code_of(initialized, after_new_instance, (100, 5)) is ErrorCode.PRODUCER_FENCED
    assert code_of(initialized, after_new_instance, (100, 6)) is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("expected", [(101, 5), (99, 5), (100, 3), (100, 6)])
def test_another_producer_id_or_epoch_is_fenced(expected: tuple[int, int]) -> None:
    assert code_of(initialized, state_of(), expected) is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("state", PREPARED)
def test_a_transaction_that_is_being_ended_makes_a_new_instance_wait(state: TransactionState) -> None:
    for expected in (None, (100, 5), (1, 1)):
        assert code_of(initialized, state_of(state), expected) is ErrorCode.CONCURRENT_TRANSACTIONS


def test_an_open_transaction_has_to_be_aborted_first_and_only_for_its_producer() -> None:
    with pytest.raises(TransactionOpenError):
        initialized(state_of(ONGOING))
    assert code_of(initialized, state_of(ONGOING), (101, 5)) is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("epoch", [LAST_CLIENT_EPOCH, MAX_EPOCH])
def test_exhausted_epochs_lead_to_a_new_producer_id(epoch: int) -> None:
    for expected, last_epoch in ((None, -1), ((100, epoch), epoch)):
        current = state_of(epoch=epoch)
        with pytest.raises(ProducerIdNeededError):
            initialized(current, expected)
        found = initialized(current, expected, new_producer_id=200)
        assert (found.producer_id, found.producer_epoch, found.last_producer_epoch) == (200, 0, last_epoch)
        assert found.previous_producer_id == 100


def test_the_last_epoch_of_the_previous_producer_id_is_a_repeated_request() -> None:
    rotated = initialized(state_of(epoch=LAST_CLIENT_EPOCH), (100, LAST_CLIENT_EPOCH), new_producer_id=200)
    again = initialized(rotated, (100, LAST_CLIENT_EPOCH))
    assert (again.producer_id, again.producer_epoch) == (200, 0)
    assert code_of(initialized, rotated, (100, LAST_CLIENT_EPOCH - 1)) is ErrorCode.PRODUCER_FENCED


def added(
    current: TransactionMetadata | None, producer: tuple[int, int] = (100, 5), *partitions: tuple[str, int]
) -> TransactionMetadata | None:
    return transitions.add_partitions(
        current, ProducerIdAndEpoch(*producer), partitions or [P0], version=2, now_ms=2_000
    )


@pytest.mark.parametrize("state", [EMPTY, *COMPLETED])
def test_the_first_partition_opens_a_transaction(state: TransactionState) -> None:
    found = added(state_of(state))
    assert found is not None
    assert (found.state, list(found.partitions), found.start_ms, found.update_ms) == (ONGOING, [P0], 2_000, 2_000)
    assert (found.producer_epoch, found.client_version) == (5, 2)


def test_more_partitions_keep_the_start_and_known_ones_change_nothing() -> None:
    assert added(state_of(ONGOING)) is None
    found = added(state_of(ONGOING), (100, 5), P0, P1)
    assert found is not None
    assert (set(found.partitions), found.start_ms, found.update_ms) == ({P0, P1}, 900, 2_000)


def test_only_the_current_producer_adds_partitions() -> None:
    assert code_of(added, None) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    for state in (EMPTY, ONGOING, *COMPLETED):
        assert code_of(added, state_of(state), (101, 5)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        for epoch in (4, 6):
            assert code_of(added, state_of(state), (100, epoch)) is (ErrorCode.PRODUCER_FENCED)


@pytest.mark.parametrize("state", PREPARED)
def test_partitions_wait_for_the_end_of_the_last_transaction(state: TransactionState) -> None:
    """Also for another producer id: after a rotation the producer has the next one already."""
    for producer in ((100, 5), (100, 4), (200, 0)):
        assert code_of(added, state_of(state), producer) is ErrorCode.CONCURRENT_TRANSACTIONS


def missing(current: TransactionMetadata | None, producer: tuple[int, int] = (100, 5)) -> list[tuple[str, int]]:
    return transitions.missing_partitions(current, ProducerIdAndEpoch(*producer), [P0, P1])


def test_verification_finds_the_partitions_that_were_not_added() -> None:
    assert missing(state_of(ONGOING)) == [P1]
    for state in (EMPTY, *COMPLETED):
        assert missing(state_of(state)) == [P0, P1]
    assert code_of(missing, None) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert code_of(missing, state_of(ONGOING), (101, 5)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert code_of(missing, state_of(ONGOING), (100, 4)) is ErrorCode.PRODUCER_FENCED
    for state in PREPARED:
        assert code_of(missing, state_of(state)) is ErrorCode.CONCURRENT_TRANSACTIONS


def test_a_transaction_times_out_after_its_start_unless_it_has_two_phase_commit() -> None:
    current = state_of(ONGOING)
    assert not transitions.has_timed_out(current, 900 + 60_000)
    assert transitions.has_timed_out(current, 900 + 60_001)
    assert not transitions.has_timed_out(current._replace(timeout_ms=NO_TIMEOUT_MS), 10**15)
    for state in (EMPTY, *PREPARED, *COMPLETED):
        assert not transitions.has_timed_out(state_of(state), 10**15)


def test_an_id_expires_when_nothing_has_changed_and_no_transaction_is_open() -> None:
    for state in TransactionState:
        expects = state in (EMPTY, *COMPLETED)
        assert transitions.has_expired(state_of(state), 1_000 + 500, 500) is expects
        assert not transitions.has_expired(state_of(state), 1_000 + 499, 500)


def test_partitions_have_the_order_of_a_java_hash_set() -> None:
    """Printed by a JVM, which added them in these steps to copies of a HashSet, and grouped them by topic."""
    partitions = ordered([])
    for step in (
        [("orders", 0), ("orders", 1)],
        [("payments", number) for number in range(10)],
        [("t", 0)],
        [("ledger.entries", number) for number in range(6)],
        [("__consumer_offsets", 37)],
    ):
        partitions = ordered([*partitions, *step])
    assert by_topic(partitions) == [
        ("t", [0]),
        ("payments", [4, 3, 6, 5, 0, 2, 1, 8, 7, 9]),
        ("orders", [0, 1]),
        ("ledger.entries", [5, 0, 2, 1, 4, 3]),
        ("__consumer_offsets", [37]),
    ]
