"""The compiled append to a partition changes a log, its producers and the topic's counters as the Python path does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.partitions.partition import Partition
from barnabas.broker.probes import TopicProbe
from barnabas.broker.storage.log.append import TransactionEnd
from barnabas.protocol.records.end_marker import EndMarker
from tests.support.storage.bench import START_MS, TOPIC_ID, LogBench, log_config, sized_batch

_partition = pytest.importorskip("barnabas.broker.partitions.kernels._partition")


class _Waiter:
    """Counts its wakes."""

    def __init__(self) -> None:
        self.wakes = 0

    def wake(self) -> None:
        self.wakes += 1

    def finish(self) -> None:
        raise AssertionError("not finished by an append")


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.fixture
def partition(tmp_path: Path, loop: asyncio.AbstractEventLoop) -> Partition:
    return Partition(LogBench(tmp_path).open(), 0, TOPIC_ID, TopicProbe(), loop)


def test_an_append_is_accounted_and_wakes_the_waiting_fetches_once_per_turn(
    partition: Partition, loop: asyncio.AbstractEventLoop
) -> None:
    waiter = _Waiter()
    partition.append(sized_batch(100))
    partition.add_waiter(waiter)
    for offset in (1, 2):
        appended = _partition.append(partition, sized_batch(200), False, START_MS)
        assert (appended["base_offset"], appended["last_offset"], appended["size_bytes"]) == (offset, offset, 200)
    assert (partition.appended_bytes, partition.probe.bytes_in, partition.probe.records_in) == (500, 500, 3)
    loop.run_until_complete(asyncio.sleep(0))
    assert waiter.wakes == 1
    assert partition.log.log_end_offset == 3


def test_a_transaction_that_begins_bounds_the_stable_bytes(partition: Partition) -> None:
    for sequence in range(3):
        header = {"producer_id": 7, "producer_epoch": 0, "base_sequence": sequence, "is_transactional": sequence > 0}
        if sequence:
            appended = _partition.append(partition, sized_batch(100, **header), True, START_MS)
            assert appended["opens_transaction"] == (sequence == 1)
        else:
            partition.append(sized_batch(100, **header))
    assert (partition.appended_bytes, partition.stable_bytes) == (300, 100)
    assert partition.log.last_stable_offset == 1


def test_the_first_batch_of_a_segment_is_left_to_python(partition: Partition) -> None:
    records = sized_batch(100)
    before = bytes(records)
    assert _partition.append(partition, records, False, START_MS) is None
    assert bytes(records) == before
    assert partition.appended_bytes == 0


def _stored(partition: Partition) -> list[bytes]:
    """Return the bytes of the log's segments, with its indexes."""
    return [
        each.read_bytes() for each in sorted(partition.log.directory.iterdir()) if each.suffix in (".log", ".txnindex")
    ]


def _open_transactions(partition: Partition, producers: range) -> None:
    for producer_id in producers:
        header = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
        partition.append_in_transaction(sized_batch(100, **header))


def test_commits_of_several_partitions_are_what_append_marker_makes_of_them(
    tmp_path: Path, loop: asyncio.AbstractEventLoop
) -> None:
    ends = [TransactionEnd(producer_id, 1, EndMarker(True, 0), 2) for producer_id in (7, 8)]
    compiled, python = (
        [Partition(LogBench(tmp_path / kind / str(n)).open(), 3, TOPIC_ID, TopicProbe(), loop) for n in range(3)]
        for kind in ("compiled", "python")
    )
    for partition in (*compiled, *python):
        _open_transactions(partition, range(7, 9))
    for end in ends:
        batch = end.batch(START_MS, log_append_time=False)
        assert _partition.append_commits(compiled, end, batch, START_MS) == [0, 0, 0]
        for partition in python:
            partition.append_marker(end)
    for ours, reference in zip(compiled, python, strict=True):
        assert _stored(ours) == _stored(reference)
        for name in ("appended_bytes", "stable_bytes", "_transaction_marks"):
            assert getattr(ours, name) == getattr(reference, name), name
        assert (ours.probe.bytes_in, ours.probe.records_in) == (reference.probe.bytes_in, reference.probe.records_in)
        assert ours.log.last_stable_offset == reference.log.last_stable_offset == 4


def test_commits_that_are_unusual_in_a_partition_are_left_to_append_marker(
    tmp_path: Path, loop: asyncio.AbstractEventLoop
) -> None:
    usual, without, append_time = (
        Partition(LogBench(tmp_path / name).open(log_config(**settings)), 0, TOPIC_ID, TopicProbe(), loop)
        for name, settings in (("usual", {}), ("without", {}), ("time", {"timestamp_type": "LogAppendTime"}))
    )
    for partition in (usual, append_time):
        _open_transactions(partition, range(7, 8))
    end = TransactionEnd(7, 1, EndMarker(True, 0), 2)
    before = [each.log.log_end_offset for each in (without, append_time)]
    batch = end.batch(START_MS, log_append_time=False)
    found = _partition.append_commits([None, without, append_time, usual], end, batch, START_MS)
    assert found == [-1, -1, -1, 0]
    assert [each.log.log_end_offset for each in (without, append_time)] == before
    abort = TransactionEnd(7, 1, EndMarker(False, 0), 2)
    assert _partition.append_commits([append_time], abort, abort.batch(START_MS, log_append_time=False), START_MS) == [
        -1
    ]


def test_a_commit_says_up_to_where_a_flush_is_due(tmp_path: Path, loop: asyncio.AbstractEventLoop) -> None:
    partition = Partition(LogBench(tmp_path).open(log_config(flush_messages=1)), 0, TOPIC_ID, TopicProbe(), loop)
    _open_transactions(partition, range(7, 8))
    end = TransactionEnd(7, 1, EndMarker(True, 0), 2)
    assert _partition.append_commits([partition], end, end.batch(START_MS, log_append_time=False), START_MS) == [2]
