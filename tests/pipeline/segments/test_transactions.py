"""Committed records of segment files, as a read_committed consumer would see them. Without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.storage.bench import LogBench, log_config
from tests.support.storage.segments import read_rows
from tests.support.storage.transactions import end, send

COMMITTED = {"kafka.isolation.level": "read_committed"}


@pytest.fixture
def mixed(tmp_path: Path) -> LogBench:
    """Write transactions of two producers in turn: aborted, then committed; one stays open.

    The markers are several segments after their data.
    """
    bench = LogBench(tmp_path)
    log = bench.open(log_config(segment_bytes=700, index_interval_bytes=100))
    for sequence in range(6):
        send(log, 1, sequence, b"aborted", size=100)
        send(log, 2, sequence, b"committed", size=100)
    end(log, 1, is_commit=False)
    end(log, 2, is_commit=True)
    for sequence in range(6, 9):
        send(log, 1, sequence, b"committed", size=100)
        send(log, 2, sequence, b"aborted", size=100)
    end(log, 1, is_commit=True)
    end(log, 2, is_commit=False)
    send(log, 2, 9, b"committed")
    end(log, 2, is_commit=True)
    send(log, 1, 9, b"open")
    send(log, 2, 10, b"behind an open one")
    end(log, 2, is_commit=True)
    bench.close(log)
    return bench


def values(bench: LogBench, **options: str) -> list[bytes]:
    return [row["value"].rstrip(b"\0") for row in read_rows(bench.directory, **options)]


@pytest.mark.parametrize("size", [100, 300, 1 << 20])
@pytest.mark.parametrize("snapshots", ["all", "none", "damaged"])
def test_only_committed_records_up_to_the_first_open_transaction_are_read(
    mixed: LogBench, size: int, snapshots: str
) -> None:
    for path in mixed.directory.glob("*.snapshot"):
        if snapshots == "none":
            path.unlink()
        elif snapshots == "damaged":
            path.write_bytes(path.read_bytes()[:-1])

    assert values(mixed, maxPartitionBytes=str(size), **COMMITTED) == [b"committed"] * 10


def test_uncommitted_reading_sees_all_but_the_markers(mixed: LogBench) -> None:
    found = values(mixed)
    assert {value: found.count(value) for value in set(found)} == {
        b"aborted": 9,
        b"committed": 10,
        b"open": 1,
        b"behind an open one": 1,
    }


@pytest.mark.parametrize("start", [3, 13, 14, 16])
def test_a_start_within_a_transaction_leaves_the_rest_of_an_aborted_one_out(mixed: LogBench, start: int) -> None:
    starting = f'{{"orders": {{"0": {start}}}}}'
    rows = read_rows(mixed.directory, startingOffsets=starting, **COMMITTED)
    assert {row["value"].rstrip(b"\0") for row in rows} == {b"committed"}
    everything = read_rows(mixed.directory, **COMMITTED)
    assert [row["offset"] for row in rows] == [row["offset"] for row in everything if row["offset"] >= start]
