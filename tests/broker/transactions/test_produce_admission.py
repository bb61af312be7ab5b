"""Which transactional batches are written, by the state of their partition and the coordinator's answer.

The logs are real; the coordinator's answers are the test's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from barnabas.broker.handlers.data.produce_admission import (
    REFUSED_SEQUENCES_MAX,
    Admission,
    Batch,
    PartitionKey,
    ProduceAdmission,
)
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.probes import TopicProbe
from barnabas.broker.storage.log.append import TransactionEnd
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.data.produce import ProduceRequest
from barnabas.protocol.records.end_marker import EndMarker
from tests.support.storage.bench import START_MS, LogBench, batch

KEY = ("orders", 0)
COMMIT = EndMarker(is_commit=True, coordinator_epoch=0)

NEW = ProduceRequest(acks=-1, timeout_ms=30_000, topics=[], transactional_id="txn")
VERSION_11 = NEW.replaced(version=11)
VERSION_10 = NEW.replaced(version=10)


class Coordinator:
    """Gives the next answer of a list, and keeps the questions."""

    def __init__(self) -> None:
        self.answers: list[Admission | Deferred[Admission]] = []
        self.asked: list[tuple[int, int, list[PartitionKey], bool]] = []

    def admit(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[PartitionKey],
        *,
        adds: bool,
    ) -> Admission | Deferred[Admission]:
        assert transactional_id == "txn"
        self.asked.append((producer_id, producer_epoch, list(partitions), adds))
        return self.answers.pop(0) if self.answers else {}


class Bench:
    """A partition, its coordinator, and the admission between them."""

    def __init__(self, tmp_path: Path, loop: asyncio.AbstractEventLoop) -> None:
        self.coordinator = Coordinator()
        self.admission = ProduceAdmission(self.coordinator)
        self.partition = Partition(LogBench(tmp_path).open(), 0, bytes(16), TopicProbe(), loop)

    def check(self, request: ProduceRequest, records: memoryview) -> ErrorCode:
        """Return the error that the batch's partition gets; NONE if it may be written."""
        refusals = self.admission.admit(request, [Batch(KEY, self.partition, records)])
        assert not isinstance(refusals, Deferred)
        return refusals[KEY].code if KEY in refusals else ErrorCode.NONE

    def produce(self, request: ProduceRequest, records: memoryview) -> ErrorCode:
        """Write the batch if it is admitted; return the error, if any."""
        code = self.check(request, records)
        if code is ErrorCode.NONE:
            try:
                self.partition.append_in_transaction(records)
            except BrokerError as error:
                return error.code
        return code

    def commit(self, epoch: int, version: int = 2) -> None:
        self.partition.append_marker(TransactionEnd(7, epoch, COMMIT, version))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    loop = asyncio.new_event_loop()
    yield Bench(tmp_path, loop)
    loop.close()


def data(sequence: int, epoch: int = 0, *, producer_id: int = 7, is_transactional: bool = True) -> memoryview:
    return batch(
        (START_MS, b"k", b"v"),
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=is_transactional,
    )


def test_the_coordinator_is_asked_once_per_transaction_and_partition(bench: Bench) -> None:
    assert [bench.produce(NEW, data(sequence)) for sequence in range(3)] == [ErrorCode.NONE] * 3
    bench.commit(1)
    assert bench.produce(NEW, data(0, 1)) is ErrorCode.NONE
    assert bench.coordinator.asked == [(7, 0, [KEY], True), (7, 1, [KEY], True)]


def test_an_old_epoch_is_refused_without_the_coordinator(bench: Bench) -> None:
    bench.produce(NEW, data(0))
    bench.commit(1)
    assert bench.produce(NEW, data(1)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert len(bench.coordinator.asked) == 1


def test_a_batch_of_a_higher_epoch_than_the_open_transaction_asks_again(bench: Bench) -> None:
    bench.produce(NEW, data(0))
    bench.coordinator.answers.append({KEY: ErrorCode.PRODUCER_FENCED})
    assert bench.produce(NEW, data(0, 1)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_batch_that_is_not_transactional_needs_no_admission(bench: Bench) -> None:
    assert bench.produce(NEW, data(0, is_transactional=False)) is ErrorCode.NONE
    assert bench.coordinator.asked == []
    assert bench.partition.log.last_stable_offset == 1


@pytest.mark.parametrize(
    ("found", "new", "version_11", "version_10"),
    [
        (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS, *[ErrorCode.NOT_ENOUGH_REPLICAS] * 2),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, *[ErrorCode.NOT_ENOUGH_REPLICAS] * 3),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, *[ErrorCode.NOT_ENOUGH_REPLICAS] * 3),
        (ErrorCode.NOT_COORDINATOR, *[ErrorCode.NOT_ENOUGH_REPLICAS] * 3),
        (
            ErrorCode.TRANSACTION_ABORTABLE,
            ErrorCode.TRANSACTION_ABORTABLE,
            ErrorCode.TRANSACTION_ABORTABLE,
            ErrorCode.INVALID_TXN_STATE,
        ),
        (ErrorCode.PRODUCER_FENCED, *[ErrorCode.INVALID_PRODUCER_EPOCH] * 3),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, *[ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 3),
        (ErrorCode.INVALID_TXN_STATE, *[ErrorCode.INVALID_TXN_STATE] * 3),
    ],
)
def test_a_refusal_has_the_code_that_the_version_knows(
    bench: Bench, found: ErrorCode, new: ErrorCode, version_11: ErrorCode, version_10: ErrorCode
) -> None:
    for request, expected in ((NEW, new), (VERSION_11, version_11), (VERSION_10, version_10)):
        bench.coordinator.answers.append({KEY: found})
        assert bench.produce(request, data(0)) is expected
    assert bench.partition.log.log_end_offset == 0


def test_a_new_producer_begins_with_sequence_0_from_version_12_on(bench: Bench) -> None:
    assert bench.produce(NEW, data(1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert bench.produce(VERSION_11, data(1)) is ErrorCode.NONE


def test_a_later_batch_does_not_overtake_a_refused_one_of_an_older_client(bench: Bench) -> None:
    bench.coordinator.answers += [{KEY: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}, {}, {}]
    assert bench.produce(VERSION_11, data(5)) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert bench.produce(VERSION_11, data(6)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert bench.produce(VERSION_11, data(5)) is ErrorCode.NONE
    assert bench.produce(VERSION_11, data(6)) is ErrorCode.NONE


def test_a_new_epoch_forgets_the_refused_sequences(bench: Bench) -> None:
    bench.coordinator.answers.append({KEY: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})
    bench.produce(VERSION_11, data(0))
    assert bench.produce(VERSION_11, data(3, 1)) is ErrorCode.NONE


def test_the_memory_of_refused_sequences_is_bounded(bench: Bench) -> None:
    for producer_id in range(REFUSED_SEQUENCES_MAX + 1):
        bench.coordinator.answers.append({KEY: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})
        bench.produce(VERSION_11, data(0, producer_id=producer_id))
    assert bench.check(VERSION_11, data(1, producer_id=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert bench.check(VERSION_11, data(1, producer_id=0)) is ErrorCode.NONE  # the oldest was dropped


def test_batches_of_several_producers_refuse_the_request(bench: Bench) -> None:
    batches = [
        Batch(("orders", number), bench.partition, data(0, producer_id=producer))
        for number, producer in enumerate((7, 8))
    ]
    with pytest.raises(BrokerError) as refused:
        bench.admission.admit(NEW, batches)
    assert refused.value.code is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_a_deferred_admission_is_checked_against_the_log_of_its_arrival(bench: Bench) -> None:
    later: Deferred[Admission] = Deferred()
    bench.coordinator.answers.append(later)
    refusals = bench.admission.admit(NEW, [Batch(KEY, bench.partition, data(1))])
    assert isinstance(refusals, Deferred)
    found: list[ErrorCode] = []
    refusals.then(lambda answer: found.extend(each.code for each in answer.values()))
    assert found == []
    later.resolve({})
    assert found == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
