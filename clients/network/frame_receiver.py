"""Frames out of the bytes of a connection.

Small frames are read through one buffer and copied out of it. A frame that does not fit is received into a buffer of
its own, which the caller keeps, so fetched batches are never copied here. Responses of 1 MiB cost 0.25 CPU s/GB this
way, 0.5 (uvloop) to 1.0 (asyncio) with streams; small ones cost the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from barnabas.protocol.framing import REQUEST_LIMIT, SIZE_PREFIX, frame_size

RECEIVE_BUFFER_BYTES: Final = 64 * 1024
"""Frames up to this size are read through the shared buffer."""


class FrameReceiver:
    """Calls `on_frame` with each frame, without its size, until `stop`."""

    __slots__ = (
        "_buffer",
        "_end",
        "_is_stopped",
        "_large",
        "_large_filled",
        "_limit",
        "_max_bytes",
        "_on_frame",
        "_start",
        "_view",
    )

    def __init__(self, max_bytes: int, on_frame: Callable[[memoryview], None], limit: str = REQUEST_LIMIT) -> None:
        """`limit` names in errors what decides `max_bytes`, as in FrameLimit."""
        self._max_bytes = max_bytes
        self._limit = limit
        self._on_frame = on_frame
        self._is_stopped = False
        self._buffer = bytearray(RECEIVE_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._start = 0  # of the bytes in _buffer that are not parsed yet
        self._end = 0
        self._large: memoryview | None = None  # the large frame that is being received, without its size
        self._large_filled = 0

    def stop(self) -> None:
        """Ignore what is received from now on."""
        self._is_stopped = True

    def buffer(self) -> memoryview:
        """Return the buffer for the next bytes: the rest of a large frame, or the free end of the shared buffer."""
        if self._large is not None:
            return self._large[self._large_filled :]
        if self._end == len(self._buffer):
            remaining = self._end - self._start  # less than a frame, and _parse has seen that the frame fits
            self._buffer[:remaining] = self._buffer[self._start : self._end]
            self._start, self._end = 0, remaining
        return self._view[self._end :]

    def received(self, size: int) -> None:
        """Take in `size` bytes in the last buffer. Raises DecodeError, and what `on_frame` raises."""
        if self._large is None:
            self._end += size
            self._parse()
            return
        self._large_filled += size
        if self._large_filled == len(self._large):
            frame, self._large = self._large, None
            self._on_frame(frame)

    def _parse(self) -> None:
        """Take all whole frames out of the shared buffer, and start receiving a large one."""
        while self._end - self._start >= SIZE_PREFIX and not self._is_stopped:
            size = frame_size(self._buffer, self._start, self._max_bytes, self._limit)
            begin = self._start + SIZE_PREFIX
            if begin + size <= self._end:
                self._start = begin + size
                self._on_frame(memoryview(bytes(self._view[begin : begin + size])))
            elif SIZE_PREFIX + size > len(self._buffer):
                received = self._end - begin
                self._large = memoryview(bytearray(size))
                self._large[:received] = self._view[begin : self._end]
                self._large_filled = received
                self._start = self._end = 0
                return
            else:
                return
        if self._start == self._end:
            self._start = self._end = 0
