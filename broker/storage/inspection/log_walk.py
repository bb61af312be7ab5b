"""Iteration over a `.log` file (or a metadata snapshot) that continues after damaged batches.

The broker's own scan (segment.scan) ends at the first wrong CRC, because nothing after it may be served. This one
reports the wrong CRC and continues, for inspection. It ends at the first implausible size.

Message sets of format version 0 and 1 (protocol/records/legacy/messages) are iterated entry by entry; a compressed
wrapper is one entry. Source: Kafka FileLogInputStream.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from barnabas.protocol.crc32c import crc32c
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.errors import CorruptRecordError
from barnabas.protocol.records.layout import ATTRIBUTES_POSITION, HEADER_SIZE, LOG_OVERHEAD, MAGIC_POSITION, MAGIC_V2
from barnabas.protocol.records.legacy.messages import LegacyMessage, read_inner_messages

_CHUNK_BYTES = 4 * 1024 * 1024
_HEAD_BYTES = MAGIC_POSITION + 1
_MAX_FIRST_BYTE = 0x7F
"""Largest first byte of an offset, which is not negative."""
_MIN_ENTRY_BYTES = {0: LOG_OVERHEAD + 14, 1: LOG_OVERHEAD + 22}
"""CRC, magic, attributes, a null key and a null value; version 1 also has a timestamp."""


class StoredBatch(NamedTuple):
    """A batch of version 2. `batch` is a view that is valid until the next step of the iteration.

    `fault` describes a wrong CRC, or is None.
    """

    position: int
    batch: RecordBatch
    fault: str | None

    @property
    def first_offset(self) -> int:
        """The batch's base offset."""
        return self.batch.base_offset

    @property
    def last_offset(self) -> int:
        """The batch's last offset."""
        return self.batch.last_offset


class StoredMessage(NamedTuple):
    """An entry of a message set of version 0 or 1: a message, or a wrapper with several compressed messages.

    `message` is a view that is valid until the next step of the iteration; `fault` is as in `StoredBatch`.
    """

    position: int
    message: LegacyMessage
    fault: str | None

    @property
    def first_offset(self) -> int:
        """Offset of a wrapper's first message; the entry's own if that cannot be read."""
        if self.fault is None and self.message.is_wrapper:
            with contextlib.suppress(CorruptRecordError):
                return read_inner_messages(self.message)[0][0]
        return self.message.offset

    @property
    def last_offset(self) -> int:
        """The message's offset; a wrapper's is that of its last message."""
        return self.message.offset


class LogWalk:
    """Iterable over [start, end) of a file; iterate once.

    `position` is the end of the last whole entry. After the last step `end_fault` is the reason why the iteration ended
    before `size_bytes`, or None.
    """

    def __init__(self, path: Path, *, start: int = 0, end: int | None = None) -> None:
        """`end` defaults to the file's size at the start of the iteration."""
        self.path = path
        self.position = start
        self.size_bytes = 0
        self.end_fault: str | None = None
        self._end = end

    @property
    def left_bytes(self) -> int:
        """Bytes after the last whole batch."""
        return self.size_bytes - self.position

    def __iter__(self) -> Iterator[StoredBatch | StoredMessage]:
        """Yield all entries. Raises OSError."""
        descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(descriptor).st_size
            self.size_bytes = size if self._end is None else min(size, self._end)
            yield from self._steps(descriptor)
        finally:
            os.close(descriptor)

    def _steps(self, descriptor: int) -> Iterator[StoredBatch | StoredMessage]:
        buffer = memoryview(bytearray(min(_CHUNK_BYTES, max(self.left_bytes, 0))))
        while self.left_bytes > 0:
            filled = os.preadv(descriptor, (buffer[: self.left_bytes],), self.position)
            inside = 0
            while True:
                size = self._size_at(buffer, inside, filled)
                if size is None:
                    return
                if not 0 < size <= filled - inside:
                    break
                yield self._step_at(buffer, inside, size)
                self.position += size
                inside += size
            if inside == 0:
                if filled < len(buffer[: self.left_bytes]):
                    self.end_fault = "the file became shorter while it was read"
                    return
                # A batch larger than the buffer; its size was checked against the end of the file.
                buffer = memoryview(bytearray(max(size, _HEAD_BYTES)))

    def _size_at(self, buffer: memoryview, inside: int, filled: int) -> int | None:
        """Return the entry's size, 0 if the buffer must be refilled, None at the end of the iteration."""
        if not self.left_bytes:
            return None
        if filled - inside < _HEAD_BYTES:
            if self.left_bytes >= _HEAD_BYTES:
                return 0
            self.end_fault = f"{self.left_bytes} bytes are left, fewer than a batch header"
            return None
        magic = buffer[inside + MAGIC_POSITION]
        length = int.from_bytes(buffer[inside + 8 : inside + 12], "big", signed=True)
        least = HEADER_SIZE if magic == MAGIC_V2 else _MIN_ENTRY_BYTES.get(magic)
        if least is None or length + LOG_OVERHEAD < least:
            self.end_fault = f"no batch begins here: magic {magic}, length {length}"
            return None
        if magic != MAGIC_V2 and buffer[inside] > _MAX_FIRST_BYTE:
            self.end_fault = f"no message begins here: magic {magic}, a negative offset"
            return None
        if length + LOG_OVERHEAD > self.left_bytes:
            self.end_fault = f"a batch of {length + LOG_OVERHEAD} bytes begins here, {self.left_bytes} are left"
            return None
        return length + LOG_OVERHEAD

    def _step_at(self, buffer: memoryview, inside: int, size: int) -> StoredBatch | StoredMessage:
        if buffer[inside + MAGIC_POSITION] == MAGIC_V2:
            batch = RecordBatch(buffer, inside)
            return StoredBatch(self.position, batch, _crc_fault(batch))
        message = LegacyMessage(buffer[inside : inside + size])
        try:
            message.ensure_valid()
        except CorruptRecordError as error:
            return StoredMessage(self.position, message, str(error).partition(": ")[2])
        return StoredMessage(self.position, message, None)


def is_zeros(path: Path, position: int) -> bool:
    """Return whether the file has only zeros from `position` on: preallocated, or lost in a crash."""
    with path.open("rb") as file:
        file.seek(position)
        while chunk := file.read(_CHUNK_BYTES):
            if chunk.count(0) != len(chunk):
                return False
    return True


def _crc_fault(batch: RecordBatch) -> str | None:
    try:
        batch.ensure_valid()
    except CorruptRecordError:
        computed = crc32c(batch.bytes[ATTRIBUTES_POSITION:])
        return f"stored crc {batch.crc:#010x}, computed {computed:#010x}"
    return None
