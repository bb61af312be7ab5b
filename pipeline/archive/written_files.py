"""Number and size of the files that a job wrote to a directory."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.pipeline.segments.files import FileSystem, file_system


class WrittenFiles(NamedTuple):
    """Number of files, and their total size."""

    files: int
    size_bytes: int


def written_files(path: str, suffix: str = ".parquet") -> WrittenFiles:
    """Count files with a suffix below a path or URI, without Spark's own (`_...`, `.crc`). Raises OSError."""
    system, inner = file_system(path)
    return _count(system, inner, suffix)


def _count(system: FileSystem, path: str, suffix: str) -> WrittenFiles:
    files = size_bytes = 0
    for entry in system.list(path):
        if entry.name.startswith(("_", ".")):
            continue
        if entry.is_directory:
            below = _count(system, entry.path, suffix)
            files, size_bytes = files + below.files, size_bytes + below.size_bytes
        elif entry.name.endswith(suffix):
            files, size_bytes = files + 1, size_bytes + entry.size_bytes
    return WrittenFiles(files, size_bytes)
