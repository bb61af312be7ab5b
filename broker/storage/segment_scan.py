"""Walking the batches of a `.log` file, header by header or whole.

Headers are read in pieces, so that a segment of small batches costs few system calls and one of large batches reads
little more than its headers. What ends a walk without an error is a torn tail: fewer bytes than the next header or
batch claims. Everything else that is no batch raises CorruptRecordError with its position. The functions take the
handle, not its descriptor: it must stay open as long as the walk goes on.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator

from barnabas.broker.storage.file_records import read_exactly
from barnabas.broker.storage.open_files import FileHandle
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.errors import CorruptRecordError
from barnabas.protocol.records.layout import HEADER_SIZE, LOG_OVERHEAD, MAGIC_POSITION, MAGIC_V2
from barnabas.protocol.records.scan import BatchScan
from barnabas.protocol.records.scanned import ProducerBatch, ScanFault

_HEADER_CHUNK_BYTES = 64 * 1024
_SCAN_BUFFER_BYTES = 256 * 1024
"""What is read must still lie in the second-level cache when its CRC is computed: 1 MiB costs three times as much."""
_PRODUCER_BATCHES = 128 * 1024
"""So many are gathered before those without effect are left out: the more, the more are; 64 bytes each."""
_MIN_OLD_MESSAGE_BYTES = 14
"""CRC, magic, attributes, key size, value size."""


class OldFormatError(CorruptRecordError):
    """A message set of format version 0 or 1: valid, but not read by this release."""

    def __init__(self, position: int, magic: int) -> None:
        super().__init__(f"message format version {magic} at position {position} is not read by this release")


def iter_headers(file: FileHandle, position: int, end: int) -> Iterator[tuple[int, RecordBatch]]:
    """(position, header) of each batch that begins in [position, end) and ends by `end`.

    The views hold headers only. Raises CorruptRecordError (OldFormatError for an old format), OSError.
    """
    chunk = b""
    chunk_position = position
    while end - position >= HEADER_SIZE:
        inside = position - chunk_position
        if len(chunk) - inside < HEADER_SIZE:
            chunk = os.pread(file.fd, min(_HEADER_CHUNK_BYTES, end - position), position)
            chunk_position = position
            inside = 0
            if len(chunk) < HEADER_SIZE:
                return
        if chunk[inside + MAGIC_POSITION] != MAGIC_V2:
            _ensure_no_old_message(file.fd, position, end)
        batch = _header_at(chunk, inside, position)
        if batch.size_bytes > end - position:
            return
        yield position, batch
        position += batch.size_bytes


def scan_segment(scan: BatchScan, file: FileHandle, end: int, *, origin: int = 0) -> Iterator[list[ProducerBatch]]:
    """Drive `scan` from its position to `end`, or to its fault; the batches with a producer id, some at a time.

    The scan's position 0 lies at `origin` of the file. A batch that is larger than the buffer gets one of its own.
    Raises OSError, OldFormatError; any other fault is left to the caller.
    """
    position = origin + scan.position
    view = memoryview(bytearray(min(_SCAN_BUFFER_BYTES, max(end - position, 0))))
    fault = scan.fault
    while fault is None and position < end:
        if scan.needed_bytes > len(view):
            view = memoryview(bytearray(scan.needed_bytes))
        wanted = min(len(view), end - position)
        filled = os.preadv(file.fd, (view[:wanted],), position)
        if filled < wanted:
            end = position + filled  # the file has become shorter
        fault = scan.feed(view[:filled], end - position)
        position = origin + scan.position
        if fault is ScanFault.OLD_FORMAT:
            _ensure_no_old_message(file.fd, position, end)
        if scan.producer_batch_count >= _PRODUCER_BATCHES:
            yield scan.take_producer_batches()
    yield scan.take_producer_batches()


def read_batch(file: FileHandle, position: int, size: int) -> RecordBatch:
    """The whole batch at `position`, as a copy. Raises CorruptRecordError, CorruptFileError, OSError."""
    batch = RecordBatch(read_exactly(file.fd, position, size))
    batch.ensure_valid()
    return batch


def _ensure_no_old_message(fd: int, position: int, end: int) -> None:
    """Raise OldFormatError if a whole message of format 0 or 1 lies at `position`: its CRC tells it from garbage."""
    head = os.pread(fd, MAGIC_POSITION + 1, position)
    if len(head) <= MAGIC_POSITION or head[MAGIC_POSITION] >= MAGIC_V2:
        return
    length = int.from_bytes(head[8:LOG_OVERHEAD], "big", signed=True)
    if not _MIN_OLD_MESSAGE_BYTES <= length <= end - position - LOG_OVERHEAD:
        return
    message = read_exactly(fd, position + LOG_OVERHEAD, length)
    if zlib.crc32(message[4:]) == int.from_bytes(message[:4], "big"):
        raise OldFormatError(position, head[MAGIC_POSITION])


def _header_at(chunk: bytes | memoryview, inside: int, position: int) -> RecordBatch:
    magic = chunk[inside + MAGIC_POSITION]
    if magic != MAGIC_V2:
        length = int.from_bytes(chunk[inside + 8 : inside + LOG_OVERHEAD], "big", signed=True)
        raise CorruptRecordError(f"no batch at position {position}: magic {magic}, length {length}")
    batch = RecordBatch(chunk, inside)
    if batch.base_offset < 0 or batch.last_offset_delta < 0:
        raise CorruptRecordError(
            f"batch at position {position} has base offset {batch.base_offset}, delta {batch.last_offset_delta}"
        )
    return batch
