"""Snapshot of a directory's files, with which tests assert that nothing has changed."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class FileState(NamedTuple):
    """A file or directory: its bytes (none for a directory), modification and change time in ns, mode and inode."""

    content: bytes
    modified_ns: int
    changed_ns: int
    mode: int
    inode: int


def snapshot_of(directory: Path) -> dict[str, FileState]:
    """Return the state of the directory and everything in it, by relative path. Any write, rename or chmod shows."""
    found = {}
    for path in (directory, *sorted(directory.rglob("*"))):
        stat = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(directory))] = FileState(
            content, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_mode, stat.st_ino
        )
    return found
