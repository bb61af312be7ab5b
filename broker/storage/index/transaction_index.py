"""The file `<base_offset:020d>.txnindex`: the transactions that were aborted by markers in this segment.

Big-endian, 34 bytes per row, never preallocated, created with its first row:
    int16 version              0
    int64 producer_id
    int64 first_offset         of the transaction, may be in an earlier segment
    int64 last_offset          the marker's offset
    int64 last_stable_offset   just after the marker: first offset of another open transaction, or the marker + 1

Rows are in the order of their markers. A read_committed fetch gets the rows that overlap its range of offsets; the
search ends at a row whose last stable offset is not below the end of the range. The file is rebuilt when its segment is
recovered. The caller serializes writers; readers take no lock. Source: Kafka TransactionIndex, AbortedTxn.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.files.file_names import LOG_SUFFIX, TRANSACTION_INDEX_SUFFIX

VERSION = 0

_ROW = Struct(">hqqqq")
_LAST_OFFSET = Struct(">q")
_LAST_OFFSET_AT = 18

ROW_BYTES = 34
assert _ROW.size == ROW_BYTES


class AbortedTxn(NamedTuple):
    """A row of the index: one aborted transaction."""

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def iter_rows(content: bytes | bytearray, start: int = 0) -> Iterator[AbortedTxn]:
    """Yield the whole rows from row number `start` on, of any version."""
    for position in range(start * ROW_BYTES, len(content) - ROW_BYTES + 1, ROW_BYTES):
        yield AbortedTxn(*_ROW.unpack_from(content, position))


def encode_row(row: AbortedTxn) -> bytes:
    """Return a row's bytes."""
    return _ROW.pack(*row)


class TransactionIndex:
    """Transaction index of one segment; its file is looked up on demand."""

    __slots__ = ("_content", "_last_offset", "_size_bytes", "base_offset", "path")

    def __init__(self, path: str, base_offset: int) -> None:
        self.path = path
        self.base_offset = base_offset
        self._size_bytes = -1
        """Size of the file; -1 before it was looked up."""
        self._content = bytearray()
        """The rows as they were last read; appends extend it, so that a fetch after each abort reads no file."""
        self._last_offset: int | None = None
        """Last offset of the last row, -1 without rows; None if not read yet."""

    @property
    def size_bytes(self) -> int:
        """Size in bytes; 0 for a segment without the file. Raises OSError."""
        if self._size_bytes < 0:
            path = self.path
            try:
                self._size_bytes = os.stat(path).st_size
            except FileNotFoundError:
                self._ensure_not_renamed(path)
                self._size_bytes = 0
        return self._size_bytes

    def _ensure_not_renamed(self, path: str) -> None:
        """Raise FileNotFoundError if the whole segment was renamed or removed.

        A missing `.txnindex` means "no aborted transactions" only if the `.log` is still there; otherwise a
        read_committed consumer would get aborted records. A segment's rename begins with the `.log`.
        """
        stem, _, stage = path.rpartition(TRANSACTION_INDEX_SUFFIX)
        os.stat(f"{stem}{LOG_SUFFIX}{stage}")
        if path != self.path:
            raise FileNotFoundError(errno.ENOENT, "the segment was renamed", path)

    def append(self, row: AbortedTxn) -> None:
        """Add a row; its last offset must be above that of the last row. Raises OSError; then nothing was added."""
        size = self.size_bytes
        last = self._read_last_offset()
        assert row.last_offset > last, f"{self.path}: {row.last_offset} is not above {last}"
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            data = encode_row(row)
            if os.pwrite(descriptor, data, size) != len(data):
                os.ftruncate(descriptor, size)
                raise OSError(errno.ENOSPC, "only a part of a row was written", self.path)
        finally:
            os.close(descriptor)
        if len(self._content) == size:
            self._content += data
        self._size_bytes = size + ROW_BYTES
        self._last_offset = row.last_offset

    def collect(self, start_offset: int, upper_bound: int) -> tuple[list[AbortedTxn], bool]:
        """Return the transactions that overlap [start_offset, upper_bound), and whether the search is complete.

        It is complete if no row of a later segment can overlap. The file is read once and cached; then it is a binary
        search. Raises OSError.
        """
        content = self._read()
        found = []
        for row in iter_rows(content, self._first_row_ending_at(content, start_offset)):
            if row.first_offset < upper_bound:
                found.append(row)
            if row.last_stable_offset >= upper_bound:
                return found, True
        return found, False

    def rows(self) -> list[AbortedTxn]:
        """Return all rows. Raises OSError."""
        return list(iter_rows(self._read()))

    def truncate_to(self, offset: int) -> None:
        """Drop rows with markers at or above `offset`. Raises OSError."""
        if self.size_bytes:
            self._cut(self._first_row_ending_at(self._read(), offset) * ROW_BYTES)

    def reset(self) -> None:
        """Drop all rows; an existing file becomes empty, as in Kafka. Raises OSError."""
        if self.size_bytes or os.path.exists(self.path):
            self._cut(0)

    def check(self) -> None:
        """Check all rows. Raises CorruptFileError, OSError."""
        content = self._read()
        if len(content) % ROW_BYTES:
            raise CorruptFileError(Path(self.path), f"{len(content)} bytes are not rows of {ROW_BYTES}")
        before = self.base_offset - 1
        for row in iter_rows(content):
            if row.version != VERSION:
                raise CorruptFileError(Path(self.path), f"row of version {row.version}, only {VERSION} is supported")
            if row.last_offset <= before or not 0 <= row.first_offset <= row.last_offset:
                raise CorruptFileError(Path(self.path), f"row {tuple(row)} does not come after offset {before}")
            before = row.last_offset

    def sync(self) -> None:
        """Make the rows durable. Raises OSError."""
        if self.size_bytes:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def forget(self) -> None:
        """Drop the cached content."""
        self._size_bytes = -1
        self._content = bytearray()
        self._last_offset = None

    def _read(self) -> bytearray:
        size = self.size_bytes
        content = self._content
        if len(content) != size:
            with open(self.path, "rb") as file:
                content = self._content = bytearray(file.read(size))
        return content

    def _cut(self, size_bytes: int) -> None:
        os.truncate(self.path, size_bytes)
        self._size_bytes = size_bytes
        self._content = bytearray()
        self._last_offset = None

    def _read_last_offset(self) -> int:
        if self._last_offset is None:
            content = self._read()
            last = len(content) - ROW_BYTES
            self._last_offset = -1 if last < 0 else _LAST_OFFSET.unpack_from(content, last + _LAST_OFFSET_AT)[0]
        return self._last_offset

    @staticmethod
    def _first_row_ending_at(content: bytearray, offset: int) -> int:
        """Return the number of the first row with a last offset >= `offset`, by binary search."""
        low, high = 0, len(content) // ROW_BYTES
        while low < high:
            middle = (low + high) // 2
            if _LAST_OFFSET.unpack_from(content, middle * ROW_BYTES + _LAST_OFFSET_AT)[0] < offset:
                low = middle + 1
            else:
                high = middle
        return low
