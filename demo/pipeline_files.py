"""Readers of the jobs' output files, without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq


def archived_offsets(topic_directory: Path) -> list[tuple[int, int]]:
    """Return (partition, offset) of every row of every file."""
    found: list[tuple[int, int]] = []
    for path in sorted(topic_directory.rglob("*.parquet")):
        table = pq.ParquetFile(path).read(columns=["partition", "offset"])
        found += zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True)
    return found


def hours_that_differ(topic_directory: Path) -> int:
    """Count rows whose `time_hour`, the last column of the value, differs from the hour of their directory."""
    differing = 0
    for path in sorted(topic_directory.rglob("*.parquet")):
        date, hour = (part.partition("=")[2] for part in path.parts[-3:-1])
        due = f"{date}T{int(hour):02d}:00:00Z".encode()
        for value in pq.ParquetFile(path).read(columns=["value"])["value"].to_pylist():
            if value.rpartition(b",")[2] != due:
                differing += 1
    return differing


def snapshot_rows(topic_directory: Path) -> dict[bytes, bytes]:
    """Return key -> value of a snapshot's rows."""
    rows: dict[bytes, bytes] = {}
    for path in sorted(topic_directory.glob("*.parquet")):
        table = pq.ParquetFile(path).read(columns=["key", "value"])
        rows.update(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True))
    return rows
