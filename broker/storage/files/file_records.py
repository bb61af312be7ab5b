"""The `.log` file of a segment: record batches one after the other, and nothing else.

Batches are appended at `size_bytes` by pwrite (with `preallocate` the file is longer), read by pread and sent by
sendfile. A write that fails half way, on a full disk, is cut off again, so `size_bytes` is always the end of a batch.
Positions are int32 in the index, so a file stays below 2 GiB.
"""

from __future__ import annotations

import errno
import os

from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.files.open_files import FileHandle, OpenFiles, open_for_reading

_WARM_STEP_BYTES = 256 * 1024
"""Distance between the probes of `is_warm`: about the size of the kernel's read-ahead."""


class FileSlice:
    """`size` bytes of a file from `position` on. The file stays open while this object exists, even if unlinked.

    Use `fd` with sendfile or pread and an explicit position: other slices share its file offset.
    """

    __slots__ = ("_handle", "fd", "position", "size")

    def __init__(self, handle: FileHandle, position: int, size: int) -> None:
        self._handle = handle
        self.fd = handle.fd
        self.position = position
        self.size = size

    def part(self, position: int, size: int) -> FileSlice:
        """Return a part of the slice; `position` is relative to it."""
        return FileSlice(self._handle, self.position + position, size)

    def read(self) -> bytes:
        """Return all bytes of the slice. Raises CorruptFileError if the file has become shorter, OSError."""
        return read_exactly(self.fd, self.position, self.size)

    def is_warm(self) -> bool:
        """Return whether the slice is in the page cache, so that sending would not wait for the disk.

        A page every 256 KiB is probed without blocking (preadv2 with RWF_NOWAIT).
        """
        probe = bytearray(1)
        last = self.position + self.size - 1
        try:
            for position in (*range(self.position, last, _WARM_STEP_BYTES), last):
                os.preadv(self.fd, (probe,), position, os.RWF_NOWAIT)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:
                return True  # tmpfs and others: no disk to wait for, or no way to find out
            raise
        return True


class FileRecords:
    """One `.log` file: active, that is open for writing, or sealed, opened for reading on demand and evictable."""

    __slots__ = ("_handle", "_open_files", "_preallocated_bytes", "fd", "path", "recently_used", "size_bytes")

    def __init__(self, path: str, size_bytes: int, open_files: OpenFiles) -> None:
        """Represent a sealed file of `size_bytes` without opening it."""
        self.path = path
        self.size_bytes = size_bytes
        self.fd = -1
        self.recently_used = False
        self._preallocated_bytes = 0
        self._open_files = open_files
        self._handle: FileHandle | None = None

    @classmethod
    def create(cls, path: str, open_files: OpenFiles, *, preallocate_bytes: int = 0) -> FileRecords:
        """Create an empty, active file with `preallocate_bytes` as its initial length. Raises OSError."""
        records = cls(path, 0, open_files)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        records._handle = FileHandle(descriptor)
        records.fd = descriptor
        if preallocate_bytes:
            os.ftruncate(descriptor, preallocate_bytes)
            records._preallocated_bytes = preallocate_bytes
        return records

    def activate(self) -> None:
        """Open the file for writing and keep it open. Raises OSError."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        if self._handle is not None and self.fd < 0:
            self._open_files.forget(self)
        self._handle = FileHandle(descriptor)
        self.fd = descriptor

    def append(self, data: memoryview | bytes | bytearray) -> None:
        """Write whole batches at the end. Raises OSError; then nothing was added."""
        position = self.size_bytes
        total = len(data)
        try:
            written = os.pwrite(self.fd, data, position)
            if written != total:
                view = memoryview(data)
                while written < total:
                    written += os.pwrite(self.fd, view[written:], position + written)
        except OSError:
            self.undo_partial_append()
            raise
        self.size_bytes = position + total

    def undo_partial_append(self) -> None:
        """Cut off the bytes that a failed write left after `size_bytes`. Raises OSError if that fails, too."""
        os.ftruncate(self.fd, self.size_bytes)
        if self._preallocated_bytes:
            os.ftruncate(self.fd, max(self._preallocated_bytes, self.size_bytes))

    def handle(self) -> FileHandle:
        """Return the open file, opening a sealed one if needed. Raises OSError (FileNotFoundError once removed)."""
        handle = self._handle
        if handle is None:
            handle = FileHandle(open_for_reading(self))
            self._handle = handle
            self._open_files.register(self)
        self.recently_used = True
        return handle

    def slice(self, position: int, size: int) -> FileSlice:
        """Return a part of the file. Raises OSError."""
        return FileSlice(self.handle(), position, size)

    def truncate_to(self, size_bytes: int) -> int:
        """Cut an active file; return the number of bytes removed. Raises OSError."""
        dropped = self.size_bytes - size_bytes
        if dropped > 0:
            os.ftruncate(self.fd, size_bytes)
            self._preallocated_bytes = 0
            self.size_bytes = size_bytes
        return max(dropped, 0)

    def sync(self) -> None:
        """Make all appends durable. Raises OSError, which must take the log directory offline.

        A failed fsync is never retried: the kernel may have dropped the dirty pages and would report success.
        """
        handle = self.handle()  # a reference, so that the file is not closed by an eviction meanwhile
        os.fdatasync(handle.fd)

    def trim(self) -> None:
        """Cut the preallocated space after the last batch. Raises OSError."""
        if self._preallocated_bytes > self.size_bytes:
            os.ftruncate(self.fd, self.size_bytes)
        self._preallocated_bytes = 0

    def seal(self) -> None:
        """End appends; from now on the file may be closed to free its descriptor. Raises OSError."""
        self.trim()
        if self.fd >= 0:
            self.fd = -1
            self._open_files.register(self)

    def evict(self) -> None:
        """Drop the open file; slices in flight keep it open."""
        self._handle = None

    def close(self) -> None:
        """Drop the open file and the entry in `OpenFiles`."""
        if self.fd < 0 and self._handle is not None:
            self._open_files.forget(self)
        self.fd = -1
        self._handle = None


def read_exactly(fd: int, position: int, size: int) -> bytes:
    """Return `size` bytes from `position` on. Raises CorruptFileError if the file is shorter, OSError."""
    data = os.pread(fd, size, position)
    if len(data) == size:
        return data
    parts = [data]
    missing = size - len(data)
    while missing:
        data = os.pread(fd, missing, position + size - missing)
        if not data:
            raise CorruptFileError(f"fd {fd}", f"file ends {missing} bytes before position {position + size}")
        parts.append(data)
        missing -= len(data)
    return b"".join(parts)
