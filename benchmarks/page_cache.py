"""Keeps the page cache full, as on a machine that has run for a while.

Virtual machines may give freed memory back to their host; the first touch of a fresh page then costs seconds per GB
of system time and drowns what is measured. With a full cache the kernel recycles pages instead (5 GB/s), and figures
repeat.
So: write one file as large as memory less 2 GB, once, and read it before each measured line. What is free even then
(programs that have ended, files that were removed) is the next one's to touch first, and whoever comes first pays for
it: it is taken up by a second file.
"""

from __future__ import annotations

import os
from pathlib import Path

LEFT_FREE_BYTES = 2 << 30
FREE_BYTES = 320 << 20
"""About what the kernel keeps free by itself."""
REST_BYTES_MAX = 6 << 30
"""The second file is never larger."""
_BLOCK_BYTES = 8 << 20


class PageCacheFiller:
    """The file `path`, written when it is made, read by `refill`, removed by `remove`."""

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
        """Read the file: its pages are the ones that the next line's data will replace."""
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
    """Memory that nothing uses, not even the page cache."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemFree:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/meminfo has no MemFree")
