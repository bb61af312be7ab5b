"""A copy equals its source, whatever happens to the source between two fetches."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import pytest

from barnabas.broker.mirrors.copied_log import CopiedLog
from barnabas.broker.mirrors.partition_copier import (
    Action,
    Append,
    EpochEnd,
    Fail,
    FetchedPartition,
    FindCommonEnd,
    FindEpochEnd,
    FindLeader,
    FindOffsets,
    FindTopic,
    PartitionCopier,
    RaiseStart,
    Restart,
    Truncate,
)
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.probes import TopicProbe
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log_manager import LogManager
from barnabas.protocol.errors import ErrorCode
from tests.support.mirrors.source_log import SourceLog, TruncatingManager, assert_equal, content, entries
from tests.support.storage.bench import TOPIC_ID, LogBench, log_config

_CONFIG = log_config(segment_bytes=1200, index_interval_bytes=200)
_STEPS_MAX = 400


class Copy:
    """A copy, and the loop that keeps it."""

    def __init__(self, log: PartitionLog, source: SourceLog, loop: Any = None) -> None:
        partition = Partition(log, 0, TOPIC_ID, TopicProbe(), loop)
        self.log = CopiedLog(partition, log, cast(LogManager, TruncatingManager(log)), keeps_cut=False)
        self.copier = PartitionCopier()
        self.source = source
        self.seen: list[Action] = []

    def reconnect(self) -> None:
        self._carry_out(self.copier.begin(self.log))

    def step(self, max_bytes: int) -> bool:
        """Fetch once; return whether anything was to be done."""
        answer = self.source.fetch(self.log.end, self.copier.last_fetched_epoch(self.log), max_bytes)
        actions = self.copier.fetched(answer, self.log)
        self._carry_out(actions)
        return bool(actions)

    def settle(self) -> None:
        for _ in range(_STEPS_MAX):
            if not self.step(700):
                return
        raise AssertionError(f"does not settle: {self.seen[-6:]}")

    def _carry_out(self, actions: Sequence[Action]) -> None:
        for action in actions:
            self.seen.append(action)
            match action:
                case FindOffsets():
                    log = self.source.log
                    found = self.copier.offsets_found(log.log_start_offset, log.log_end_offset, self.log)
                    self._carry_out(found)
                case FindEpochEnd(epoch):
                    self._carry_out(self.copier.epoch_end_found(self.source.end_of_epoch(epoch), self.log))
                case FindCommonEnd():
                    self._carry_out(self.copier.common_end_found(self._common_end(), self.log))
                case FindLeader() | FindTopic() | Fail():
                    raise AssertionError(action)
                case _:
                    self.log.publish(self.log.carry_out([action]))

    def _common_end(self) -> int:
        theirs = {(each.base_offset, each.crc): each.last_offset for each in entries(self.source.log)}
        end = max(self.log.start, self.source.log.log_start_offset)
        for each in entries(self.log.partition.log):
            if each.last_offset < end:
                continue
            if (each.base_offset, each.crc) not in theirs:
                return each.base_offset
            end = each.last_offset + 1
        return self.log.end


class Pair(Protocol):
    """What makes a source and its copy."""

    def __call__(self, *, compares_epochs: bool = True) -> tuple[SourceLog, Copy]: ...


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """Yield what makes a source and its copy; close their files, those of removed segments too: they are hundreds."""
    benches = [LogBench(tmp_path / name) for name in ("source", "copy")]
    logs = [bench.open(_CONFIG) for bench in benches]

    def make(*, compares_epochs: bool = True) -> tuple[SourceLog, Copy]:
        source = SourceLog(logs[0], compares_epochs=compares_epochs)
        return source, Copy(logs[1], source)

    yield make
    for bench, log in zip(benches, logs, strict=True):
        bench.scheduler.advance(_CONFIG.file_delete_delay_ms)
        log.go_offline()


def change(source: SourceLog, rng: random.Random) -> None:
    """Change the source as a cluster may."""
    log = source.log
    match rng.randrange(12):
        case 0:
            source.epoch += rng.randint(1, 2)  # a new leader
        case 1 if log.log_end_offset > log.log_start_offset:  # an unclean election: the new leader has fewer records
            log.truncate_to(rng.randint(log.log_start_offset, log.log_end_offset))
            source.epoch += 1
        case 2:
            log.delete_records(rng.randint(log.log_start_offset, log.log_end_offset))
        case 3 if rng.random() < 0.3:
            log.truncate_fully_and_start_at(log.log_end_offset + rng.randint(0, 5))
        case 4:
            source.skip(rng.randint(1, 4))
        case _:
            for _ in range(rng.randint(1, 6)):
                source.append(rng.choice((100, 150, 400)))


@pytest.mark.parametrize("compares_epochs", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_a_copy_equals_its_source_after_any_history(pair: Pair, seed: int, compares_epochs: bool) -> None:
    rng = random.Random(seed)
    source, copy = pair(compares_epochs=compares_epochs)
    for _ in range(60):
        before = source.epoch
        change(source, rng)
        if source.epoch != before:
            source.append(100)
            copy.reconnect()  # to the new leader
        for _ in range(rng.randint(0, 3)):
            copy.step(rng.choice((50, 300, 2000)))
    copy.reconnect()
    copy.settle()
    assert_equal(source.log, copy.log)


def test_a_copy_of_a_source_restored_from_a_backup_keeps_the_common_records(pair: Pair) -> None:
    """No epoch of the copy is known to the source: the batches are compared."""
    source, copy = pair()
    source.epoch = 5
    for _ in range(12):
        source.append(100)
    copy.settle()
    source.log.truncate_to(7)
    source.log.core.epochs.clear()
    source.log.core.latest_epoch = -1
    source.epoch = 2
    for _ in range(9):
        source.append(150)
    copy.settle()
    assert FindCommonEnd() in copy.seen
    assert Truncate(7, "the source has other batches from offset 7 on") in copy.seen
    assert content(copy.log.partition.log, 0) == content(source.log, 0)


def test_an_empty_source_that_begins_at_an_offset_lets_the_copy_begin_there(pair: Pair) -> None:
    source, copy = pair()
    source.log.truncate_fully_and_start_at(42)
    copy.settle()
    assert (copy.log.start, copy.log.end) == (42, 42)
    source.append(100)
    copy.settle()
    assert_equal(source.log, copy.log)


def test_a_copy_that_begins_in_the_middle_of_a_batch_has_the_whole_batch_and_the_start_of_the_source(
    pair: Pair,
) -> None:
    from tests.support.storage.records import plain

    source, copy = pair()
    source.log.append_as_leader(memoryview(plain(10)), leader_epoch=0)
    source.log.delete_records(4)
    copy.settle()
    assert copy.seen[-3:] == [Restart(0, 0), copy.seen[-2], RaiseStart(4)]
    assert (copy.log.start, copy.log.end) == (4, 10)


def test_records_that_were_deleted_before_they_were_copied_are_counted(pair: Pair) -> None:
    source, copy = pair()
    for _ in range(5):
        source.append(100)
    copy.settle()
    for _ in range(20):
        source.append(100)
    source.log.delete_records(15)
    copy.settle()
    assert Restart(15, 10) in copy.seen
    assert_equal(source.log, copy.log)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, FindLeader),
        (ErrorCode.FENCED_LEADER_EPOCH, FindLeader),
        (ErrorCode.UNKNOWN_TOPIC_ID, FindTopic),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, FindTopic),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, Fail),
        (ErrorCode.KAFKA_STORAGE_ERROR, Fail),
        (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, Fail),
    ],
)
def test_an_error_says_what_to_look_for(pair: Pair, error: ErrorCode, kind: type) -> None:
    _, copy = pair()
    (action,) = copy.copier.fetched(FetchedPartition(error), copy.log)
    assert type(action) is kind
    if isinstance(action, Fail):
        assert error.name in action.reason


def test_damaged_records_are_fetched_again_and_fail_in_the_end(pair: Pair) -> None:
    _, copy = pair()
    damaged = FetchedPartition(records=memoryview(bytes(8) + b"\xff" * 60))
    waits = []
    for _ in range(4):
        (action,) = copy.copier.fetched(damaged, copy.log)
        assert isinstance(action, Fail)
        waits.append(action.retry_seconds)
    assert waits == [1.0, 1.0, 30.0, 30.0]


def test_records_that_are_cut_after_the_first_batch_are_appended_up_to_the_cut(pair: Pair) -> None:
    source, copy = pair()
    for _ in range(3):
        source.append(100)
    answer = source.fetch(0, -1, 1 << 20)
    answer.records = answer.records[:250]
    (action,) = copy.copier.fetched(answer, copy.log)
    assert isinstance(action, Append)
    assert copy.log.carry_out([action]).bytes == 200
    copy.settle()
    assert_equal(source.log, copy.log)


@pytest.mark.parametrize(
    ("start", "end", "action"),
    [
        (0, 3, Truncate(3, "the source ends at offset 3")),
        (2, 2, Restart(2, 0)),
        (9, 9, Restart(9, 4)),
        (1, 8, FindCommonEnd()),
    ],
)
def test_the_range_of_the_source_decides_after_offset_out_of_range(
    pair: Pair, start: int, end: int, action: Action
) -> None:
    source, copy = pair()
    for _ in range(5):
        source.append(100)
    copy.settle()
    copy.log.partition.delete_records(2)
    assert copy.copier.fetched(FetchedPartition(ErrorCode.OFFSET_OUT_OF_RANGE), copy.log) == [FindOffsets()]
    assert copy.copier.offsets_found(start, end, copy.log) == [action]


@pytest.mark.parametrize(
    ("diverging", "offset"),
    [
        (EpochEnd(3, 9), 6),  # the copy has no epoch 3: its epoch before that ends at 6
        (EpochEnd(2, 4), 4),
        (EpochEnd(5, 7), 7),
        (EpochEnd(5, 12), 6),  # the copy has epoch 5 only as far as the source: its last batches are of another leader
    ],
)
def test_the_copy_is_cut_where_the_epochs_of_both_agree(pair: Pair, diverging: EpochEnd, offset: int) -> None:
    source, copy = pair()
    for epoch, count in ((2, 6), (5, 4)):
        source.epoch = epoch
        for _ in range(count):
            source.append(100)
    copy.settle()
    (action,) = copy.copier.fetched(FetchedPartition(diverging=diverging), copy.log)
    assert isinstance(action, Truncate)
    assert action.offset == offset
