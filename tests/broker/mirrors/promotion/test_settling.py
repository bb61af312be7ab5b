"""Settling against a model of a source: copies are prefixes of its logs, of any length, without their first records."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.broker.mirrors.promotion.settling import (
    CLOCK_TOLERANCE_MS,
    UNKNOWN_TIME,
    Ending,
    EndingFinder,
    OpenTransaction,
    Outcome,
    settle,
)
from barnabas.protocol.topic_partition import TopicPartition

PARTITIONS = 3
SKEW_MS = CLOCK_TOLERANCE_MS // 2 - 1
"""Of a broker's clock, in either direction."""


class Event(NamedTuple):
    """A transactional batch, or a marker. `transaction` is the model's number of it, which no log contains."""

    transaction: int
    producer_id: int
    epoch: int
    is_marker: bool = False
    is_commit: bool = False
    timestamp_ms: int = 0


@dataclass
class Producer:
    producer_id: int
    has_own_epochs: bool
    epoch: int = 0
    transaction: int | None = None
    partitions: set[int] = field(default_factory=set)
    is_upgraded: bool = False


@dataclass
class Source:
    """Logs of a cluster whose clocks differ, and how each of its transactions ended."""

    skews: list[int]
    now_ms: int = 1_000_000
    logs: list[list[Event]] = field(default_factory=lambda: [[] for _ in range(PARTITIONS)])
    is_commit: dict[int, bool] = field(default_factory=dict)
    begun: int = 0

    def write(self, producer: Producer, partition: int, *, has_data: bool) -> None:
        if producer.transaction is None:
            producer.transaction = self.begun
            self.begun += 1
        producer.partitions.add(partition)
        if has_data:
            self.logs[partition].append(Event(producer.transaction, producer.producer_id, producer.epoch))

    def end(self, producer: Producer, *, is_commit: bool, fences: bool, bump: int) -> None:
        transaction = producer.transaction
        if transaction is not None:
            is_commit = is_commit and not fences
            marker_epoch = producer.epoch + int(fences or producer.has_own_epochs)
            self.is_commit[transaction] = is_commit
            for partition in sorted(producer.partitions):
                stamp = self.now_ms + self.skews[partition]
                event = Event(transaction, producer.producer_id, marker_epoch, True, is_commit, stamp)
                self.logs[partition].append(event)
            producer.epoch = marker_epoch
            producer.partitions.clear()
            producer.transaction = None
        if fences:
            producer.epoch += bump


def a_source(chance: Random) -> tuple[Source, list[Producer]]:
    """Return a source after random steps of one or two producers, which may be upgraded between two transactions."""
    source = Source([chance.randint(-SKEW_MS, SKEW_MS) for _ in range(PARTITIONS)])
    producers = [Producer(number, chance.random() < 0.5) for number in range(chance.randint(1, 2))]
    upgrades = chance.random() < 0.2
    for _ in range(chance.randint(2, 40)):
        producer = chance.choice(producers)
        source.now_ms += chance.choice([0, 1, 100, 15_000])
        kind = chance.randrange(10)
        if kind < 6:
            source.write(producer, chance.randrange(PARTITIONS), has_data=kind > 0)
        else:
            source.end(producer, is_commit=chance.random() < 0.6, fences=kind == 9, bump=chance.randint(0, 1))
            if upgrades and not producer.has_own_epochs:
                producer.has_own_epochs, producer.is_upgraded = True, True
    return source, producers


@dataclass
class Copy:
    """A part of a log, and what a promotion reads in it."""

    place: TopicPartition
    events: list[Event]

    def endings(self) -> list[Ending]:
        finder = EndingFinder(self.place)
        for each in self.events:
            if each.is_marker:
                finder.marker(each.producer_id, each.epoch, is_commit=each.is_commit, timestamp_ms=each.timestamp_ms)
            else:
                finder.data(each.producer_id, each.epoch)
        return finder.endings

    def open(self) -> dict[OpenTransaction, int]:
        """Return the open transactions with the model's numbers."""
        found: dict[int, tuple[OpenTransaction, int]] = {}
        stamp = UNKNOWN_TIME
        for offset, each in enumerate(self.events):
            if each.is_marker:
                stamp = each.timestamp_ms
                found.pop(each.producer_id, None)
            elif each.producer_id not in found:
                opened = OpenTransaction(self.place, each.producer_id, each.epoch, offset, stamp)
                found[each.producer_id] = opened, each.transaction
        return dict(found.values())


@given(seed=st.integers(0, 2**32))
@settings(max_examples=800, deadline=None)
def test_no_outcome_contradicts_the_source_or_another_copy(seed: int) -> None:
    chance = Random(seed)
    source, producers = a_source(chance)
    copies = []
    for number, log in enumerate(source.logs):
        end = chance.randint(0, len(log))
        start = chance.choice([0, 0, chance.randint(0, end)])
        copies.append(Copy(TopicPartition("t", number), log[start:end]))
    transactions = {key: number for copy in copies for key, number in copy.open().items()}
    endings = [each for copy in copies for each in copy.endings()]
    for key, outcome in settle(transactions, endings, {}).items():
        number = transactions[key]
        parts = [[each for each in copy.events if each.transaction == number] for copy in copies]
        is_committed_in_a_copy = any(each.is_commit for part in parts for each in part)
        has_own_epoch = producers[key.producer_id].has_own_epochs and not producers[key.producer_id].is_upgraded
        if outcome is Outcome.COMMIT:
            assert source.is_commit[number]
        elif outcome is Outcome.ABORT:
            assert not is_committed_in_a_copy
        else:
            assert any(each.is_commit and each.producer_id == key.producer_id for each in endings)
        if has_own_epoch and any({each.is_commit for each in part} == {True, False} for part in parts):
            assert outcome is Outcome.COMMIT


A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def ending(data_epoch: int, marker_epoch: int, *, is_commit: bool = True, timestamp_ms: int = 0) -> Ending:
    return Ending(A, 7, data_epoch, marker_epoch, is_commit, timestamp_ms)


def outcome_of(transaction: OpenTransaction, *endings: Ending, answer: Outcome | None = None) -> Outcome:
    answers = {} if answer is None else {transaction: answer}
    return settle([transaction], endings, answers)[transaction]


def test_a_marker_of_the_next_epoch_decides_and_one_of_the_same_epoch_does_not() -> None:
    opened = OpenTransaction(B, 7, 3, 100)
    assert outcome_of(opened, ending(3, 4)) is Outcome.COMMIT
    assert outcome_of(opened, ending(2, 3)) is Outcome.ABORT
    assert outcome_of(opened, ending(3, 3)) is Outcome.UNDECIDED
    assert outcome_of(opened, ending(3, 3), ending(3, 4)) is Outcome.UNDECIDED
    assert outcome_of(opened, ending(3, 4, is_commit=False)) is Outcome.ABORT
    assert outcome_of(opened) is Outcome.ABORT


def test_the_source_decides_where_markers_do_not() -> None:
    opened = OpenTransaction(B, 7, 3, 100)
    assert outcome_of(opened, ending(3, 3), answer=Outcome.ABORT) is Outcome.ABORT
    assert outcome_of(opened, answer=Outcome.COMMIT) is Outcome.COMMIT
    assert outcome_of(opened, ending(3, 4), answer=Outcome.ABORT) is Outcome.COMMIT


def test_markers_from_before_the_transaction_decide_nothing() -> None:
    opened = OpenTransaction(B, 7, 3, 100, began_after_ms=50_000)
    assert outcome_of(opened, ending(3, 3, timestamp_ms=50_000 - CLOCK_TOLERANCE_MS - 1)) is Outcome.ABORT
    assert outcome_of(opened, ending(3, 3, timestamp_ms=50_000 - CLOCK_TOLERANCE_MS)) is Outcome.UNDECIDED
