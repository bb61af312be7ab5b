"""Counts of a stopped broker's files and index entries, from file names and sizes.

An offset index has 8 bytes per entry and a time index 12. A clean shutdown trims both, so size / entry size is exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

OFFSET_ENTRY_SIZE = 8
TIME_ENTRY_SIZE = 12


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    """One partition's directory."""

    name: str
    segments: int
    log_bytes: int
    offset_entries: int
    time_entries: int
    files: int


def partition_files(directory: Path) -> PartitionFiles:
    """Count one partition's files."""
    files = [path for path in directory.iterdir() if path.is_file()]
    logs = _sizes(files, ".log")
    return PartitionFiles(
        name=directory.name,
        segments=len(logs),
        log_bytes=sum(logs),
        offset_entries=sum(_sizes(files, ".index")) // OFFSET_ENTRY_SIZE,
        time_entries=sum(_sizes(files, ".timeindex")) // TIME_ENTRY_SIZE,
        files=len(files),
    )


def topic_files(data_directory: Path, topic: str) -> list[PartitionFiles]:
    """Return one entry per partition, ordered by number."""
    prefix = f"{topic}-"
    directories = [path for path in data_directory.iterdir() if path.is_dir() and path.name.startswith(prefix)]
    directories.sort(key=lambda path: int(path.name.removeprefix(prefix)))
    return [partition_files(directory) for directory in directories]


def _sizes(files: Iterable[Path], suffix: str) -> list[int]:
    return [path.stat().st_size for path in files if path.suffix == suffix]
