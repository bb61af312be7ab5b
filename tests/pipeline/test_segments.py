"""Segment files as rows: which files count, where a read begins and ends, and how it is divided. Without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.segments import read_rows, segment_parts, write_log
from tests.support.storage import START_MS, TP

VALUE = bytes(100)


def one_by_one(count: int) -> list[list[tuple[int, bytes | None, bytes | None]]]:
    """Batches of one record each, a second apart."""
    return [[(START_MS + 1000 * index, b"k%d" % index, VALUE)] for index in range(count)]


def offsets(path: Path, **options: str) -> list[int]:
    return [row["offset"] for row in read_rows(path, **options)]


@pytest.mark.parametrize("what", ["data directory", "partition directory"])
def test_all_records_are_read_from_a_data_directory_or_a_partitions(tmp_path: Path, what: str) -> None:
    bench, log = write_log(tmp_path, one_by_one(50), segment_bytes=1024)
    bench.close(log)
    assert len(segment_parts({"path": str(tmp_path)})) > 3

    rows = read_rows(tmp_path if what == "data directory" else bench.directory)

    assert [row["offset"] for row in rows] == list(range(50))
    assert rows[7] == {
        "key": b"k7",
        "value": VALUE,
        "topic": TP.topic,
        "partition": TP.partition,
        "offset": 7,
        "timestamp": rows[7]["timestamp"],
        "timestampType": 0,
    }
    assert rows[7]["timestamp"].timestamp() * 1000 == START_MS + 7000
