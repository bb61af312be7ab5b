"""Sequential reading of a segment through the cleaner's read buffer, in whole batches.

The buffers have the configured size. They grow for a larger batch, until the segment is done.
Source: Kafka Cleaner.growBuffersOrFail.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.protocol.records.errors import CorruptRecordError
from barnabas.protocol.records.layout import LOG_OVERHEAD
from barnabas.protocol.records.legacy.messages import LegacyMessage

_MIN_BUFFER_BYTES = 4096


class IoBuffers:
    """Read buffer and write buffer of one cleaner, allocated by `restore` and freed by `release`."""

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = max(size_bytes, _MIN_BUFFER_BYTES)
        self.read = bytearray()
        self.write = bytearray()

    def restore(self) -> None:
        """Bring both buffers to the configured size."""
        if len(self.read) != self._size_bytes:
            self.read = bytearray(self._size_bytes)
        if len(self.write) != self._size_bytes:
            self.write = bytearray(self._size_bytes)

    def release(self) -> None:
        """Free the memory."""
        self.read = bytearray()
        self.write = bytearray()


def read_through(
    segment: LogSegment,
    position: int,
    buffers: IoBuffers,
    take: Callable[[memoryview], int],
    before_read: Callable[[], object],
) -> None:
    """Pass the batches from `position` on to `take`, a piece at a time.

    `take` returns the number of bytes that it has processed, in whole batches; the rest is passed again at the start of
    the next piece. A negative number ends the reading. Raises CorruptRecordError if the file ends within a batch,
    OSError.
    """
    end = segment.size_bytes
    while position < end:
        before_read()
        file = segment.log.handle()  # a reference, so that the file is not closed meanwhile
        wanted = min(len(buffers.read), end - position)
        with memoryview(buffers.read) as view:
            filled = os.preadv(file.fd, (view[:wanted],), position)
            with view[:filled] as piece:
                done = take(piece) if filled else 0
                needed = done or _size_of_first(piece, end - position)
        if done < 0:
            return
        if not done:
            if needed <= filled:
                raise CorruptRecordError(f"no batch at position {position} can be read")
            if filled < wanted:
                raise CorruptRecordError(f"the file ends at {position + filled}, {end} bytes were written")
            buffers.read = bytearray(needed)
        position += done


def whole_legacy_message(piece: memoryview, at: int) -> LegacyMessage | None:
    """Return the checked message of format 0 or 1 at `at`, None if it is cut short. Raises CorruptRecordError."""
    size = int.from_bytes(piece[at + 8 : at + LOG_OVERHEAD], "big", signed=True) + LOG_OVERHEAD
    if size > len(piece) - at:
        return None
    message = LegacyMessage(piece, at)
    message.ensure_valid()
    return message


def _size_of_first(piece: memoryview, left: int) -> int:
    """Return the size of a batch that is larger than the piece. Raises CorruptRecordError if the file is too short."""
    if len(piece) < LOG_OVERHEAD:
        raise CorruptRecordError(f"the {left} bytes at the end of the file are not a batch")
    size = int.from_bytes(piece[8:LOG_OVERHEAD], "big", signed=True) + LOG_OVERHEAD
    if not LOG_OVERHEAD < size <= left:
        raise CorruptRecordError(f"a batch claims {size} bytes, {left} are left in the file")
    return size
