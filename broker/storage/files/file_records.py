"""The `.log` file of a segment: record batches one after the other, and nothing else.

Appended at `size_bytes` by pwrite (with `preallocate` the file is longer than what it holds), read by pread, sent from
by sendfile. What is not whole is not there: a write that fails half way (a full disk) is cut off again, so
`size_bytes` always ends a batch. Positions are int32 in the index, so a file stays below 2 GiB.
"""

from __future__ import annotations

import errno
import os

from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.files.open_files import FileHandle, OpenFiles, open_for_reading

MAX_SIZE_BYTES = 2**31 - 1

_WARM_STEP_BYTES = 256 * 1024
"""Distance between the probes of `is_warm`; the kernel reads ahead in pieces of about this size."""


class FileSlice:
    """`size` bytes of a file from `position` on. The file stays open, even unlinked, while this object lives.

    `fd` may be given to sendfile or pread with the slice's own position; its file offset is nobody's.
    """

    __slots__ = ("_handle", "fd", "position", "size")

    def __init__(self, handle: FileHandle, position: int, size: int) -> None:
        self._handle = handle
        self.fd = handle.fd
        self.position = position
        self.size = size

    def read(self) -> bytes:
        """All bytes of the slice. Raises CorruptFileError when the file has become shorter, OSError."""
        return read_exactly(self.fd, self.position, self.size)

    def is_warm(self) -> bool:
        """Whether sending would not wait for the disk: the pages are probed without blocking (some, not each)."""
        probe = bytearray(1)
        last = self.position + self.size - 1
        try:
            for position in (*range(self.position, last, _WARM_STEP_BYTES), last):
                os.preadv(self.fd, (probe,), position, os.RWF_NOWAIT)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:
                return True  # tmpfs and the like: nothing to wait for, or no way to know
            raise
        return True


class FileRecords:
    """One `.log` file. Active: open for writing. Sealed: opened for reading when used, and evictable."""

    __slots__ = ("_handle", "_open_files", "_preallocated_bytes", "fd", "path", "recently_used", "size_bytes")

    def __init__(self, path: str, size_bytes: int, open_files: OpenFiles) -> None:
        """A sealed file of `size_bytes`; nothing is opened yet."""
        self.path = path
        self.size_bytes = size_bytes
        self.fd = -1
        self.recently_used = False
        self._preallocated_bytes = 0
        self._open_files = open_files
        self._handle: FileHandle | None = None

    @classmethod
    def create(cls, path: str, open_files: OpenFiles, *, preallocate_bytes: int = 0) -> FileRecords:
        """A new, empty file, active; `preallocate_bytes` is the length that it gets at once. Raises OSError."""
        records = cls(path, 0, open_files)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        records._handle = FileHandle(descriptor)
        records.fd = descriptor
        if preallocate_bytes:
            os.ftruncate(descriptor, preallocate_bytes)
            records._preallocated_bytes = preallocate_bytes
        return records

    def activate(self) -> None:
        """Open for writing and keep open. Raises OSError."""
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
        """Cut off what a failed write left behind `size_bytes`. Raises OSError when not even that works."""
        os.ftruncate(self.fd, self.size_bytes)
        if self._preallocated_bytes:
            os.ftruncate(self.fd, max(self._preallocated_bytes, self.size_bytes))

    def handle(self) -> FileHandle:
        """The open file; a sealed one is opened if it is not. Raises OSError (FileNotFoundError once removed)."""
        handle = self._handle
        if handle is None:
            handle = FileHandle(open_for_reading(self))
            self._handle = handle
            self._open_files.register(self)
        self.recently_used = True
        return handle

    def slice(self, position: int, size: int) -> FileSlice:
        """A part of the file, to be sent."""
        return FileSlice(self.handle(), position, size)

    def truncate_to(self, size_bytes: int) -> int:
        """Cut the file, which must be active; the bytes that went. Raises OSError."""
        dropped = self.size_bytes - size_bytes
        if dropped > 0:
            os.ftruncate(self.fd, size_bytes)
            self._preallocated_bytes = 0
            self.size_bytes = size_bytes
        return max(dropped, 0)

    def sync(self) -> None:
        """Make what was appended durable. Raises OSError, which must take the log directory offline."""
        handle = self.handle()  # held, so that it cannot be evicted under the call
        os.fdatasync(handle.fd)

    def trim(self) -> None:
        """Cut preallocated room behind the last batch. Raises OSError."""
        if self._preallocated_bytes > self.size_bytes:
            os.ftruncate(self.fd, self.size_bytes)
        self._preallocated_bytes = 0

    def seal(self) -> None:
        """No more appends: from now on the file may be closed when others need the descriptor. Raises OSError."""
        self.trim()
        if self.fd >= 0:
            self.fd = -1
            self._open_files.register(self)

    def evict(self) -> None:
        """Forget the open file; slices in flight keep it open."""
        self._handle = None

    def close(self) -> None:
        """As `evict`, by the owner."""
        if self.fd < 0 and self._handle is not None:
            self._open_files.forget(self)
        self.fd = -1
        self._handle = None


def read_exactly(fd: int, position: int, size: int) -> bytes:
    """`size` bytes from `position` on. Raises CorruptFileError when the file is shorter, OSError."""
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
