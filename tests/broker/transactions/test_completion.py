"""Markers that cannot be written, timeouts, expiry and loading: the coordinator on real logs, with a manual clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.broker.network.deferred import Deferred
from barnabas.broker.transactions.markers import EndMarkers
from barnabas.broker.transactions.metadata import LAST_CLIENT_EPOCH, Partitions, TransactionMetadata
from barnabas.broker.transactions.state import TransactionState
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.data.produce import ProducePartition, ProduceRequest, ProduceTopic
from barnabas.protocol.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    TxnTopic,
)
from barnabas.protocol.messages.transactions.end_txn import EndTxnRequest
from barnabas.protocol.records.end_marker import decode_end_marker
from barnabas.protocol.records.reader import read_records
from barnabas.protocol.records.record import Record
from tests.support.storage.bench import log_config
from tests.support.storage.records import build
from tests.support.transactions.host import STATE, TransactionHost
from tests.support.transactions.real_partitions import Place

ONE, OTHER = ("t", 0), ("t", 1)
DAY_MS = 86_400_000
NewHost = Callable[..., TransactionHost]


@pytest.fixture
def new_host(tmp_path: Path) -> Iterator[NewHost]:
    hosts: list[TransactionHost] = []

    def create(feature: int = 2, **settings: object) -> TransactionHost:
        directory = tmp_path / str(len(hosts))
        hosts.append(TransactionHost(directory, [ONE, OTHER], feature, **settings))
        return hosts[-1]

    yield create
    for host in hosts:
        host.close()


def initialized(host: TransactionHost, transactional_id: str = "id", timeout_ms: int = 60_000) -> tuple[int, int]:
    answer = host.init_producer_id(
        InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)
    )
    assert answer is not None
    assert answer.error is ErrorCode.NONE
    return answer.producer_id, answer.producer_epoch


def added(host: TransactionHost, producer: tuple[int, int], transactional_id: str = "id") -> ErrorCode:
    producer_id, epoch = producer
    request = AddPartitionsToTxnRequest(
        version=3,
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        topics=[TxnTopic(name="t", partitions=[0, 1])],
    )
    answer = host.add_partitions(request)
    assert answer is not None
    codes = {each.error for topic in answer.topics for each in topic.partitions}
    (code,) = codes
    return code


def ending(
    producer: tuple[int, int], transactional_id: str = "id", *, is_commit: bool = True, version: int = 5
) -> EndTxnRequest:
    producer_id, epoch = producer
    return EndTxnRequest(
        version=version,
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        is_commit=is_commit,
    )


def committed(host: TransactionHost, producer: tuple[int, int]) -> ErrorCode:
    answer = host.end(ending(producer))
    assert answer is not None
    return answer.error


def state_of(host: TransactionHost, transactional_id: str = "id") -> TransactionState:
    return host.coordinator.log.states[transactional_id].state


def markers(host: TransactionHost, place: Place) -> int:
    return sum(batch.is_control for batch in host.partitions.batches(place))


def test_a_commit_is_answered_although_a_marker_cannot_be_written_and_is_completed_later(new_host: NewHost) -> None:
    host = new_host()
    producer = initialized(host)
    assert added(host, producer) is ErrorCode.NONE
    host.partitions.all[OTHER].is_full = True
    assert committed(host, producer) is ErrorCode.NONE
    assert state_of(host) is TransactionState.PREPARE_COMMIT
    assert host.coordinator.completion.missing_markers == 1
    after = (producer[0], producer[1] + 1)
    assert added(host, after) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert committed(host, producer) is ErrorCode.CONCURRENT_TRANSACTIONS
    host.loop.pass_time(900)
    host.partitions.all[OTHER].is_full = False
    assert state_of(host) is TransactionState.PREPARE_COMMIT
    host.loop.pass_time(200)
    assert state_of(host) is TransactionState.COMPLETE_COMMIT
    assert [markers(host, place) for place in (ONE, OTHER)] == [1, 1]
    assert host.coordinator.completion.missing_markers == 0
    assert added(host, after) is ErrorCode.NONE


def test_retries_come_after_twice_the_time_until_they_are_half_a_minute_apart(new_host: NewHost) -> None:
    host = new_host()
    producer = initialized(host, timeout_ms=900_000)
    assert added(host, producer) is ErrorCode.NONE
    partition = host.partitions.all[OTHER]
    partition.is_full = True
    partition.fails_in = 0
    assert committed(host, producer) is ErrorCode.NONE
    attempts = []
    for second in range(1, 130):
        before = partition.fails_in
        host.loop.pass_time(1_000)
        if partition.fails_in != before:
            attempts.append(second)
    assert [later - sooner for sooner, later in pairwise(attempts)] == [2, 4, 8, 16, 30, 30, 30]


def test_a_completed_state_that_cannot_be_written_is_tried_again_without_a_second_marker(new_host: NewHost) -> None:
    host = new_host()
    producer = initialized(host)
    assert added(host, producer) is ErrorCode.NONE
    host.partitions.all[STATE].fails_in = 2  # after the decision
    assert committed(host, producer) is ErrorCode.NONE
    assert state_of(host) is TransactionState.PREPARE_COMMIT
    host.loop.pass_time(2_100)
    assert state_of(host) is TransactionState.COMPLETE_COMMIT
    assert [markers(host, place) for place in (ONE, OTHER)] == [1, 1]


def test_a_bug_in_one_partition_delays_only_its_own_marker(new_host: NewHost, caplog: pytest.LogCaptureFixture) -> None:
    host = new_host()
    producer = initialized(host)
    assert added(host, producer) is ErrorCode.NONE
    host.partitions.all[ONE].has_bug = True
    assert committed(host, producer) is ErrorCode.NONE
    assert [markers(host, place) for place in (ONE, OTHER)] == [0, 1]
    assert "a bug while writing the end marker of id to t-0" in caplog.text
    host.partitions.all[ONE].has_bug = False
    host.loop.pass_time(1_100)
    assert state_of(host) is TransactionState.COMPLETE_COMMIT
    assert [markers(host, place) for place in (ONE, OTHER)] == [1, 1]


@pytest.mark.parametrize("step", ["markers", "completed state"])
def test_a_transaction_whose_completion_meets_a_bug_is_tried_again(
    new_host: NewHost, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, step: str
) -> None:
    host = new_host()
    producer = initialized(host)
    assert added(host, producer) is ErrorCode.NONE

    def fail(*_: object) -> None:
        raise ValueError("a bug")

    with monkeypatch.context() as patched:
        if step == "markers":
            patched.setattr(host.coordinator.markers, "write", fail)
        else:
            patched.setattr("barnabas.broker.transactions.outcomes.complete", fail)
        assert committed(host, producer) is ErrorCode.NONE
        host.loop.pass_time(1_100)
        assert state_of(host) is TransactionState.PREPARE_COMMIT
    assert caplog.text.count("a bug while completing a transaction of id") == 2
    host.loop.pass_time(2_100)
    assert state_of(host) is TransactionState.COMPLETE_COMMIT
    assert [markers(host, place) for place in (ONE, OTHER)] == [1, 1]


def test_a_bug_in_one_transaction_that_a_start_finds_does_not_stop_the_others(
    new_host: NewHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = new_host()
    ids = ["id", "id2"]
    for each in ids:
        producer = initialized(host, each)
        assert added(host, producer, each) is ErrorCode.NONE
        host.partitions.all[OTHER].is_full = True
        assert host.end(ending(producer, each)) is not None
        host.partitions.all[OTHER].is_full = False
    real = EndMarkers.unwritten
    found: list[str] = []

    def fail_at_first(self: EndMarkers, metadata: TransactionMetadata) -> list[Place]:
        found.append(metadata.transactional_id)
        if len(found) == 1:
            raise ValueError("a bug")
        return real(self, metadata)

    monkeypatch.setattr(EndMarkers, "unwritten", fail_at_first)
    host.restart()
    assert state_of(host, found[0]) is TransactionState.PREPARE_COMMIT
    assert state_of(host, found[1]) is TransactionState.COMPLETE_COMMIT
    host.loop.pass_time(1_100)
    assert state_of(host, found[0]) is TransactionState.COMPLETE_COMMIT
    assert [markers(host, place) for place in (ONE, OTHER)] == [2, 2]


def test_a_decision_that_cannot_be_written_is_refused_after_a_pause_and_changes_nothing(new_host: NewHost) -> None:
    host = new_host()
    producer = initialized(host)
    assert added(host, producer) is ErrorCode.NONE
    host.partitions.all[STATE].fails_in = 1
    assert host.end(ending(producer)) is None
    host.loop.pass_time(1_100)
    assert [answer.error for answer in host.late] == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert state_of(host) is TransactionState.ONGOING
    assert markers(host, ONE) == 0
    assert committed(host, producer) is ErrorCode.NONE


@pytest.mark.parametrize("feature", [0, 2])
def test_a_timeout_aborts_the_transaction_and_fences_its_producer(new_host: NewHost, feature: int) -> None:
    host = new_host(feature)
    producer = initialized(host, timeout_ms=5_000)
    assert added(host, producer) is ErrorCode.NONE
    host.loop.pass_time(5_000)
    assert state_of(host) is TransactionState.ONGOING
    host.loop.pass_time(1_100)
    assert state_of(host) is TransactionState.COMPLETE_ABORT
    assert added(host, producer) is ErrorCode.PRODUCER_FENCED
    probe = host.coordinator.ending._probe
    assert (probe.timed_out, probe.fencings) == (1, 1)


def test_two_phase_commit_has_to_be_enabled_and_has_no_timeout(new_host: NewHost) -> None:
    request = InitProducerIdRequest(transactional_id="id", transaction_timeout_ms=0, enable_2pc=True)
    refused = new_host().init_producer_id(request)
    assert refused is not None
    assert refused.error is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    host = new_host(transaction_two_phase_commit_enable=True)
    answer = host.init_producer_id(request)
    assert answer is not None
    producer = (answer.producer_id, answer.producer_epoch)
    assert added(host, producer) is ErrorCode.NONE
    jump(host, 30 * DAY_MS)
    assert state_of(host) is TransactionState.ONGOING
    assert committed(host, producer) is ErrorCode.NONE


def test_a_prepared_transaction_is_not_kept_for_its_next_producer(new_host: NewHost) -> None:
    refused = new_host().init_producer_id(InitProducerIdRequest(transactional_id="id", keep_prepared_txn=True))
    assert refused is not None
    assert refused.error is ErrorCode.UNSUPPORTED_VERSION


def test_an_unused_id_expires_and_stays_forgotten_after_a_restart(new_host: NewHost) -> None:
    host = new_host()
    initialized(host, "unused")
    assert added(host, initialized(host, "timed-out"), "timed-out") is ErrorCode.NONE
    jump(host, 4 * DAY_MS)
    initialized(host, "used")
    jump(host, 3 * DAY_MS)
    host.loop.run_until_complete(host.coordinator._upkeep.remove_expired())
    assert set(host.coordinator.log.states) == {"timed-out", "used"}
    host.restart()
    assert set(host.coordinator.log.states) == {"timed-out", "used"}


@pytest.mark.parametrize(
    ("failed", "code"),
    [(False, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), (True, ErrorCode.COORDINATOR_NOT_AVAILABLE)],
)
def test_an_id_is_not_served_until_its_partition_is_loaded(new_host: NewHost, failed: bool, code: ErrorCode) -> None:
    host = new_host()
    producer = initialized(host)
    before = host.coordinator.log.states["id"]
    log = host.coordinator.log.coordinator_log
    log.begin_loading(STATE[1])
    if failed:
        log.end_loading(STATE[1], failed=True)
    answer = host.init_producer_id(InitProducerIdRequest(transactional_id="id", transaction_timeout_ms=60_000))
    assert answer is not None
    assert answer.error is code
    assert added(host, producer) is code
    assert committed(host, producer) is code
    assert write(host, producer, ONE) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert host.coordinator.log.states["id"] is before
    assert open_in(host, ONE) == []
    if not failed:
        log.end_loading(STATE[1])
        assert write(host, producer, ONE) is ErrorCode.NONE
        assert committed(host, producer) is ErrorCode.NONE


def test_transactions_end_whose_ids_belong_to_another_partition_after_a_growth(new_host: NewHost) -> None:
    host = new_host()
    producer = initialized(host)
    for place in (ONE, OTHER):
        assert write(host, producer, place) is ErrorCode.NONE
    other_producer = initialized(host, "open1")
    assert write(host, other_producer, ONE, "open1") is ErrorCode.NONE
    host.partitions.all[OTHER].is_full = True
    assert committed(host, producer) is ErrorCode.NONE
    assert [open_in(host, place) for place in (ONE, OTHER)] == [[other_producer[0]], [producer[0]]]
    host.grow_state_topic()
    assert [open_in(host, place) for place in (ONE, OTHER)] == [[], []]
    assert outcomes_in(host, OTHER) == [(producer[0], True)]
    assert outcomes_in(host, ONE) == [(producer[0], True), (other_producer[0], False)]
    assert host.coordinator.completion.missing_markers == 0
    assert not host.coordinator.log.states
    host.restart()
    assert [markers(host, place) for place in (ONE, OTHER)] == [2, 1]
    assert added(host, initialized(host)) is ErrorCode.NONE


def test_markers_after_a_growth_are_tried_again(new_host: NewHost) -> None:
    host = new_host(feature=0)
    producer = initialized(host)
    assert added(host, producer) is ErrorCode.NONE
    assert write(host, producer, OTHER) is ErrorCode.NONE
    host.partitions.full_after_crash = {OTHER}
    host.grow_state_topic()
    assert open_in(host, OTHER) == [producer[0]]
    host.partitions.all[OTHER].is_full = False
    host.loop.pass_time(1_100)
    assert open_in(host, OTHER) == []
    assert outcomes_in(host, OTHER) == [(producer[0], False)]


def test_a_produce_that_waits_for_a_flush_is_refused_if_its_transaction_ends_meanwhile(new_host: NewHost) -> None:
    host = new_host(feature=1)
    log = host.partitions.all[STATE].writable_log
    assert log is not None
    log.update_config(log_config(flush_messages=2))
    producer = initialized(host)
    batch = transactional_batch(host, producer)
    topics = [ProduceTopic(name="t", partitions=[ProducePartition(0, memoryview(batch))])]
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topics=topics, transactional_id="id")
    answers: list[Any] = []
    deferred = host.loop.run(lambda: host._produce(host._session, request))
    assert isinstance(deferred, Deferred)
    deferred.then(answers.append)
    host.loop.settle()
    assert not answers
    log.flush()  # as the flusher's thread does, which tells the event loop later
    answer = host.end(ending(producer, is_commit=False, version=4))
    assert answer is not None
    assert answer.error is ErrorCode.NONE
    deliver_flushes(host)
    assert answers[0].topics[0].partitions[0].error is ErrorCode.TRANSACTION_ABORTABLE
    assert open_in(host, ONE) == []


def test_an_abort_that_waits_for_a_producer_id_does_not_abort_the_next_transaction(new_host: NewHost) -> None:
    host = new_host()
    producer = initialized(host)
    log = host.coordinator.log
    first = log.states["id"]._replace(
        state=TransactionState.ONGOING, producer_epoch=LAST_CLIENT_EPOCH, partitions=Partitions([ONE]), start_ms=1
    )
    log.append(first)
    waiting: list[Callable[[int], None]] = []
    slow = SimpleNamespace(with_new_id=lambda use, _failed: waiting.append(use))
    ending = host.coordinator.ending
    producer_ids, ending._producer_ids = ending._producer_ids, cast(Any, slow)
    ending.abort_timed_out(first)
    ending._producer_ids = producer_ids
    assert committed(host, (producer[0], LAST_CLIENT_EPOCH)) is ErrorCode.NONE
    ended = log.states["id"]
    assert added(host, (ended.producer_id, ended.producer_epoch)) is ErrorCode.NONE
    host.loop.run(lambda: waiting[0](7_000))
    assert state_of(host) is TransactionState.ONGOING


@pytest.mark.parametrize("flushing", [{"flush_messages": 1}, {"flush_acks_all": True}])
def test_a_decision_whose_flush_ends_during_the_stop_is_carried_out_by_the_next_start(
    new_host: NewHost, flushing: dict[str, Any]
) -> None:
    host = new_host()
    log = host.partitions.all[STATE].writable_log
    assert log is not None
    producer = initialized(host)
    assert write(host, producer, ONE) is ErrorCode.NONE
    log.update_config(log_config(**flushing))
    assert host.end(ending(producer)) is None
    host.loop.run_until_complete(host.coordinator.stop())
    deliver_flushes(host)
    assert state_of(host) is TransactionState.PREPARE_COMMIT
    assert markers(host, ONE) == 0
    host.restart()
    assert state_of(host) is TransactionState.COMPLETE_COMMIT
    assert markers(host, ONE) == 1


def write(host: TransactionHost, producer: tuple[int, int], place: Place, transactional_id: str = "id") -> ErrorCode:
    batch = bytes(transactional_batch(host, producer))
    return host.produce(transactional_id, {place: batch}, adds=True)[place][0]


def deliver_flushes(host: TransactionHost) -> None:
    """Do what the flusher's threads do for the flushes that are due."""
    flusher = host.coordinator.markers._flush_waits.flusher
    while flusher._due:
        log = flusher._due.popleft()
        flusher._serve(log, flusher._waiting.pop(log))
    host.loop.settle()


def transactional_batch(host: TransactionHost, producer: tuple[int, int]) -> bytearray:
    """One record, the producer's first in its epoch."""
    record = Record(0, host.loop.wall_ms(), b"k", b"v", ())
    return bytearray(
        build([record], producer_id=producer[0], producer_epoch=producer[1], base_sequence=0, is_transactional=True)
    )


def open_in(host: TransactionHost, place: Place) -> list[int]:
    entries = host.partitions.all[place].log.core.producers.producers.values()
    return [entry.producer_id for entry in entries if entry.has_open_transaction]


def outcomes_in(host: TransactionHost, place: Place) -> list[tuple[int, bool]]:
    """Producer id, and whether it commits, of each end marker."""
    return [
        (batch.producer_id, decode_end_marker(record.key or b"", record.value).is_commit)
        for batch in host.partitions.batches(place)
        if batch.is_control
        for record in read_records(batch)
    ]


def jump(host: TransactionHost, milliseconds: int) -> None:
    """Advance the clock in one step: timers run once, however often they were due."""
    host.loop._now += milliseconds / 1000
    host.loop.settle()
