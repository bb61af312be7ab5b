"""Open files of the log engine: ownership of descriptors, and a bound on their number.

A `FileHandle` owns one descriptor, which is closed with the last reference to the handle. A segment holds a reference,
and so does every slice that is being sent. So retention may unlink a file, or `OpenFiles` evict it, while a connection
still sends from it, without a lock: CPython's reference count is the number of users.

Active segments keep their files open. All other segments open theirs on demand and register with `OpenFiles`, which
evicts the least recently used ones beyond its limit (second chance: a use sets a flag, the sweep clears it). Otherwise
a broker with 1,000 partitions of 10 segments would exceed any limit on descriptors.
"""

from __future__ import annotations

import errno
import os
import resource
import sys
import threading
from collections import deque
from typing import Final, Protocol

MAPS_KEEP_DESCRIPTORS: Final = sys.version_info < (3, 13)
"""Whether each map of a file keeps a descriptor of its own, which Python's mmap does unless told otherwise (3.13)."""

FILES_OF_A_PARTITION: Final = 3 if MAPS_KEEP_DESCRIPTORS else 1
"""Descriptors of an active segment: its log, and the maps of its two indexes where these keep descriptors."""

_SHARE_OF_LIMIT = 4
_MIN_CACHED = 16
_MAX_CACHED = 4096


class FileHandle:
    """A descriptor that stays open as long as this object is referenced."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self) -> None:
        os.close(self.fd)


def open_for_reading(named: Named) -> int:
    """Open the file at `named.path`. Raises OSError; FileNotFoundError if it was renamed meanwhile.

    The cleaner gives an old segment's name to the new segment. Without the check, a thread that was suspended between
    reading the path and opening the file would read the new file with the old segment's positions.
    """
    path = named.path
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    if named.path != path:
        os.close(descriptor)
        raise FileNotFoundError(errno.ENOENT, "renamed while it was opened", path)
    return descriptor


class Named(Protocol):
    """An object whose `path` follows its file's renames."""

    path: str


class Evictable(Protocol):
    """A part of a sealed segment that holds a file open and can reopen it."""

    recently_used: bool

    def evict(self) -> None:
        """Drop the open file; a user in flight keeps its own reference."""
        ...


class OpenFiles:
    """Open files of sealed segments, at most `limit` of them. Thread-safe."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = default_limit() if limit is None else limit
        self.evictions = 0
        self._open: deque[Evictable] = deque()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._open)

    def register(self, opened: Evictable) -> None:
        """Add an open file, and evict the least recently used ones beyond the limit."""
        with self._lock:
            self._open.append(opened)
            while len(self._open) > self.limit:
                oldest = self._open.popleft()
                if oldest.recently_used and oldest is not opened:
                    oldest.recently_used = False
                    self._open.append(oldest)
                    continue
                oldest.evict()
                self.evictions += 1

    def forget(self, closed: Evictable) -> None:
        """Remove a file that its owner has closed."""
        with self._lock:
            try:
                self._open.remove(closed)
            except ValueError:
                return  # already evicted


def default_limit() -> int:
    """Return a quarter of the process's descriptor limit; the rest is for active segments and connections."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _MAX_CACHED
    return max(_MIN_CACHED, min(_MAX_CACHED, soft // _SHARE_OF_LIMIT))


def partitions_at_once() -> int:
    """Return how many partitions can be open with half of the process's descriptor limit.

    Bounds the creation of partitions (metadata/placement.py), which clients can cause by naming topics in Metadata
    requests: without the bound, logs would run out of descriptors.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft // (2 * FILES_OF_A_PARTITION)


def raise_descriptor_limit() -> int:
    """Raise the soft limit on open files to the hard limit, and return that."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
