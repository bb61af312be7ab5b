"""Size and free space of the file system that a path is on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple


class FileSystemBytes(NamedTuple):
    """`usable`: what this process may still use."""

    total: int
    usable: int


def file_system_bytes(path: Path) -> FileSystemBytes:
    """Return both figures. Raises OSError."""
    found = os.statvfs(path)
    return FileSystemBytes(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)
