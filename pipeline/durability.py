"""What must be on the disk before something is promised: files and directories of this machine, many at a time.

One fsync waits some milliseconds for the disk, and an archive by the hour has a thousand files in a micro-batch. Those
that wait at the same moment share a commit of the file system's journal, so they are asked for side by side.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Final

_AT_A_TIME: Final = 32


def make_durable(paths: Collection[str]) -> None:
    """Sync each, files or directories; returns when all of them are on the disk. Raises OSError."""
    if not paths:
        return
    with ThreadPoolExecutor(min(_AT_A_TIME, len(paths))) as pool:
        for _ in pool.map(_fsync, paths):
            pass


def _fsync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
