"""Open files of the log engine: who keeps them open, and how many.

A `FileHandle` owns one descriptor. It is closed when the last reference to the handle goes: a segment holds one, and
so does every slice that is being sent. So retention may unlink a file, or the cache below forget it, while a
connection still sends from it, and no lock is needed: CPython's reference count is the count of the users.

Active segments keep their files open. All other segments open them when they are read, and register with `OpenFiles`,
which forgets the least recently used ones beyond its limit (second chance: a use sets a flag, the sweep clears it).
A broker with 1,000 partitions of 10 segments would pass any limit otherwise.
"""

from __future__ import annotations

import errno
import os
import resource
import sys
import threading
from collections import deque
from typing import Protocol

FILES_OF_A_PARTITION = 3
"""The log, the offset index and the time index of its active segment."""

_SHARE_OF_LIMIT = 4
_MIN_CACHED = 16
_MAX_CACHED = 4096


class FileHandle:
    """A descriptor that lives as long as somebody holds this object."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self) -> None:
        os.close(self.fd)


def open_for_reading(named: Named) -> int:
    """A descriptor of the file at `named.path`. Raises OSError; FileNotFoundError when it was renamed meanwhile.

    The cleaner gives an old segment's name to the new one. A thread that read the old name and got the processor back
    late would open the new segment's file as the old one's, and find batches at positions that hold none.
    """
    path = named.path
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    if named.path != path:
        os.close(descriptor)
        raise FileNotFoundError(errno.ENOENT, "renamed while it was opened", path)
    return descriptor


class Named(Protocol):
    """Something whose `path` follows its file's renames."""

    path: str


class Evictable(Protocol):
    """Something of an inactive segment that holds a file open and can open it again."""

    recently_used: bool

    def evict(self) -> None:
        """Forget the open file; a user in flight keeps its own reference."""
        ...


class OpenFiles:
    """The files of inactive segments that are open now, at most `limit` of them. Thread-safe."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = default_limit() if limit is None else limit
        self.evictions = 0
        self._open: deque[Evictable] = deque()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._open)

    def register(self, opened: Evictable) -> None:
        """Count `opened` in, and forget the least recently used ones that are too many."""
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
        """`closed` was closed by its owner."""
        with self._lock:
            try:
                self._open.remove(closed)
            except ValueError:
                return  # evicted before


def default_limit() -> int:
    """A quarter of the descriptors that this process may have: the rest is for active segments and connections."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _MAX_CACHED
    return max(_MIN_CACHED, min(_MAX_CACHED, soft // _SHARE_OF_LIMIT))


def partitions_at_once() -> int:
    """How many partitions half of the descriptors that this process may have can hold open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft // (2 * FILES_OF_A_PARTITION)


def raise_descriptor_limit() -> int:
    """Lift the soft limit on open files to the hard one (an active segment has three); the limit that then holds."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
