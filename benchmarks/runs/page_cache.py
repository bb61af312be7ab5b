"""A full page cache, as on a machine that has run for a while.

Virtual machines may return freed memory to their host; the first access to a fresh page then costs seconds of system
time per GB and hides the measurement. With a full cache the kernel recycles pages instead (5 GB/s), and figures repeat.
Therefore one file as large as memory less 2 GB is written once and read before each measured line. A second file takes
up the memory that is free even then (from ended programs and removed files), which would otherwise cost the next
process time at its first access.
"""

from __future__ import annotations

import os
from pathlib import Path

LEFT_FREE_BYTES = 2 << 30
FREE_BYTES = 320 << 20
"""Approximate amount that the kernel itself keeps free."""
REST_BYTES_MAX = 6 << 30
"""Maximum size of the second file."""
_BLOCK_BYTES = 8 << 20


class PageCacheFiller:
    """The file `path`: written on creation, read by `refill`, removed by `remove`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rest = path.with_name(f"{path.name}.rest")
        self._block = bytearray(_BLOCK_BYTES)
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") - LEFT_FREE_BYTES
        if size <= 0:
            return
        free = os.statvfs(path.parent).f_bavail * os.statvfs(path.parent).f_frsize
        if free < size + (8 << 30):
            raise RuntimeError(f"{path.parent} has no room for a file as large as memory: use --no-page-cache-fill")
        with path.open("wb", buffering=0) as file:
            for _ in range(size // _BLOCK_BYTES):
                file.write(self._block)
            os.fdatasync(file.fileno())

    def refill(self) -> None:
        """Read the file, so that the next line's data replaces its pages."""
        if not self._path.exists():
            return
        with self._path.open("rb", buffering=0) as file:
            while file.readinto(self._block):
                pass
        with self._rest.open("wb", buffering=0) as rest:
            for _ in range(REST_BYTES_MAX // _BLOCK_BYTES):
                if _free_bytes() < FREE_BYTES:
                    break
                rest.write(self._block)
            os.fdatasync(rest.fileno())

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)
        self._rest.unlink(missing_ok=True)


def _free_bytes() -> int:
    """Return the unused memory, which not even the page cache uses."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemFree:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/meminfo has no MemFree")
