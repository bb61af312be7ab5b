"""Base of the offset index and the time index: a memory-mapped array of fixed-size entries.

While a segment is active its index file has its maximum size, rounded down to whole entries, and the unused rest is
zeros; a roll and a close trim it. After a crash the zeros are still there, which is why recovery rebuilds the index.

Two dangers of memory maps are handled here:
- A store into a hole of the file needs a disk block. On a full disk it kills the process (SIGBUS). So each page is
  allocated by posix_fallocate before its first entry, which fails with an ordinary ENOSPC.
- A load beyond the end of the file kills the process, too, and a reader may still use a map that a trim has replaced.
  So a file is never shortened below its entries: where entries are dropped, a new file replaces the old one. Maps are
  never closed explicitly; the last reader's reference does it.

Readers take no lock: an entry's bytes are stored before `entries` is increased. The caller serializes writers.
Source: Kafka AbstractIndex.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
from struct import Struct

from barnabas.broker.storage.files.durable_files import write_all
from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.files.open_files import OpenFiles, open_for_reading

_PAGE_BYTES = mmap.PAGESIZE
_WARM_BYTES = 8192
"""The end of an index, where nearly all lookups land: searched first, so that the rest need not be in memory."""


def _map(descriptor: int, length: int, protection: int) -> mmap.mmap | bytes:
    """Map a file, with read-ahead off.

    Without MADV_RANDOM the first access to each index of a new segment (10 MiB of zeros) would read the device's
    read-ahead. With a read-ahead of 8 MiB the first append to a partition cost 45 ms of CPU and 16 MiB of page cache.
    """
    if not length:
        return b""
    if sys.version_info >= (3, 13):
        # A map that keeps no descriptor. It has no size() and no resize(), which nothing here uses.
        memory = mmap.mmap(descriptor, length, mmap.MAP_SHARED, protection, trackfd=False)
    else:
        memory = mmap.mmap(descriptor, length, mmap.MAP_SHARED, protection)
    memory.madvise(mmap.MADV_RANDOM)
    return memory


class AbstractIndex:
    """One index file: writable in the active segment, else read-only, opened on demand and evictable."""

    ENTRY_SIZE = 0

    __slots__ = (
        "_allocated_bytes",
        "_length_bytes",
        "_map",
        "_open_files",
        "_writable",
        "base_offset",
        "entries",
        "in_memory",
        "max_entries",
        "path",
        "recently_used",
    )

    def __init__(self, path: str, base_offset: int, open_files: OpenFiles) -> None:
        """Create an index that is not open yet; `open_writable` or any lookup opens it."""
        self.path = path
        self.base_offset = base_offset
        self.entries = -1
        """Number of entries; -1 before the file was first opened."""
        self.max_entries = 0
        self.in_memory = False
        """For read-only directories: a rebuilt index stays in memory, and the file is not changed."""
        self.recently_used = False
        self._map: mmap.mmap | bytes | None = None
        self._length_bytes = 0
        self._allocated_bytes = 0
        self._writable = False
        self._open_files = open_files

    def open_writable(self, max_size_bytes: int) -> None:
        """Open for appends with space for `max_size_bytes`, creating a missing file. Raises OSError.

        All whole entries of an existing file are kept; the file is never made too short for them.
        """
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            size_bytes = os.fstat(descriptor).st_size
            entries = size_bytes // self.ENTRY_SIZE if self.entries < 0 else self.entries
            try:
                self._resize(descriptor, max(max_size_bytes // self.ENTRY_SIZE, entries))
            except OSError:
                # The next attempt must find what this one found, not the zeros that it added.
                os.ftruncate(descriptor, size_bytes)
                raise
            self.entries = entries
        finally:
            os.close(descriptor)
        self._writable = True
        self._load_last_entry()

    def replace(self, content: bytes) -> None:
        """Replace the file by a new one with these entries, to be opened on demand. Raises OSError.

        The old file is unlinked and not truncated: a reader that uses its map would be killed by SIGBUS.
        """
        self.close()
        self.entries = -1
        if self.in_memory:
            self._hold(content)
            return
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            write_all(descriptor, content)
        finally:
            os.close(descriptor)

    def prepare_append(self, count: int = 1) -> None:
        """Allocate disk blocks for the next `count` entries. Raises OSError, typically ENOSPC."""
        end = min((self.entries + count) * self.ENTRY_SIZE, self._length_bytes)
        if end > self._allocated_bytes:
            start = max(self._allocated_bytes, self.entries * self.ENTRY_SIZE // _PAGE_BYTES * _PAGE_BYTES)
            stop = min((end + _PAGE_BYTES - 1) // _PAGE_BYTES * _PAGE_BYTES, self._length_bytes)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
            try:
                os.posix_fallocate(descriptor, start, stop - start)
            finally:
                os.close(descriptor)
            self._allocated_bytes = stop

    def trim(self) -> None:
        """Cut the file after its last entry; from now on the index is read-only. Raises OSError."""
        if not self._writable:
            return
        os.truncate(self.path, self.entries * self.ENTRY_SIZE)
        self._length_bytes = self.entries * self.ENTRY_SIZE
        self.max_entries = self.entries
        self._writable = False
        self._map = None

    def sync(self) -> None:
        """Make the entries durable; a missing file is ignored. Raises OSError."""
        if self.in_memory:
            return
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            os.fdatasync(descriptor)
        finally:
            os.close(descriptor)

    def evict(self) -> None:
        """Drop the map of a read-only index; lookups in flight keep it."""
        if not self._writable:
            self._map = None

    def close(self) -> None:
        """Drop the map without touching the file."""
        if self._map is not None and not self._writable:
            self._open_files.forget(self)
        self._map = None
        self._writable = False

    def check(self, log_size_bytes: int) -> None:
        """Check the size and the last entry only. Raises CorruptFileError, OSError."""
        self._buffer()
        if self._length_bytes % self.ENTRY_SIZE:
            raise CorruptFileError(self.path, f"index size {self._length_bytes} is not a multiple of {self.ENTRY_SIZE}")
        self._check_last_entry(log_size_bytes)

    def _hold(self, content: bytes) -> None:
        self._map = content
        self._length_bytes = len(content)
        self.entries = self.max_entries = len(content) // self.ENTRY_SIZE
        self._load_last_entry()

    def _check_last_entry(self, log_size_bytes: int) -> None:
        raise NotImplementedError

    def _load_last_entry(self) -> None:
        """Refresh the subclass's copy of the last entry."""
        raise NotImplementedError

    def _buffer(self) -> mmap.mmap | bytes:
        """Return the map of the file, opening it read-only if needed. Raises OSError."""
        self.recently_used = True
        buffer = self._map
        if buffer is not None:
            return buffer
        descriptor = open_for_reading(self)
        try:
            length = os.fstat(descriptor).st_size
            buffer = _map(descriptor, length, mmap.PROT_READ)
        finally:
            os.close(descriptor)
        self._length_bytes = length
        first_open = self.entries < 0
        self.entries = self.max_entries = length // self.ENTRY_SIZE
        self._map = buffer
        if first_open:
            self._load_last_entry()
        if length:
            self._open_files.register(self)
        return buffer

    def _resize(self, descriptor: int, max_entries: int) -> None:
        length = max_entries * self.ENTRY_SIZE
        os.ftruncate(descriptor, length)
        self._map = _map(descriptor, length, mmap.PROT_READ | mmap.PROT_WRITE)
        self._length_bytes = length
        self._allocated_bytes = 0
        self.max_entries = max_entries

    def _writable_map(self) -> mmap.mmap:
        buffer = self._map
        assert isinstance(buffer, mmap.mmap), f"{self.path} is not open for appends"
        return buffer

    def _floor_slot(self, key: Struct, shift: int, target: int) -> int:
        """Return the last slot whose key (at byte `shift` of an entry) is <= `target`, or -1."""
        buffer = self._buffer()
        entries = self.entries
        if entries <= 0:
            return -1
        size = self.ENTRY_SIZE
        unpack_from = key.unpack_from
        low = 0
        high = entries - 1
        warm = max(0, high - _WARM_BYTES // size)
        if warm:
            if unpack_from(buffer, warm * size + shift)[0] <= target:
                low = warm
            else:
                high = warm - 1
        # Invariant: keys before `low` are <= target, keys after `high` are > target.
        while low <= high:
            middle = (low + high) >> 1
            if unpack_from(buffer, middle * size + shift)[0] <= target:
                low = middle + 1
            else:
                high = middle - 1
        return high
