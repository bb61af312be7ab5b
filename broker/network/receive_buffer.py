"""The receive buffer of one connection.

It is an anonymous mapping, so its pages cost nothing before they are touched. The kernel reads into it, requests are
decoded in it, and a produced batch is patched in it and written from it to its segment file: no byte is copied in
Python. This requires that no handler keeps a view of a request after it returns.

    0        consumed          filled     len(view)     len(mapping)
    | served | not served yet  | free     | not taken from ReceiveMemory
"""

from __future__ import annotations

import mmap
import struct
from typing import TYPE_CHECKING, Final

from barnabas.protocol.framing import SIZE_PREFIX

if TYPE_CHECKING:
    from barnabas.broker.network.receive_memory import Holder, ReceiveMemory

_SIZE: Final = struct.Struct(">i")

RECEIVE_BUFFER_BYTES: Final = 256 * 1024
"""The buffer of a new connection; a larger frame makes it grow, with memory of ReceiveMemory."""

GROWTH_BYTES: Final = 4 * 1024 * 1024
"""Most memory that a buffer takes in one step."""

KEEP_BUFFER_BYTES: Final = 4 * 1024 * 1024
"""A buffer that grew beyond this is released once its frame has been served."""


class ReceiveBuffer:
    """Received bytes that are not served yet, and the room for more. In the event loop only."""

    __slots__ = ("_holder", "_memory", "awaited", "consumed", "filled", "mapping", "resized", "starved", "view")

    def __init__(self, holder: Holder, memory: ReceiveMemory) -> None:
        """`holder` is the connection, in whose name `memory` is taken."""
        self._holder = holder
        self._memory = memory
        self.mapping = _anonymous(RECEIVE_BUFFER_BYTES)
        self.view = memoryview(self.mapping)
        """The part of the mapping for which memory was taken."""
        self.resized = 0
        """Number of changes of size."""
        self.starved = False
        """Whether the frame being received waits for memory; its connection must not read meanwhile."""
        self.filled = 0
        """End position of the received bytes."""
        self.consumed = 0
        """End position of the requests that were handed out."""
        self.awaited = 0
        """End position of the frame being received, or of the view; 0 while the frame's size is unknown."""

    @property
    def has_grown(self) -> bool:
        """Whether it has memory of ReceiveMemory."""
        return len(self.view) > RECEIVE_BUFFER_BYTES

    def has_complete_frame(self) -> bool:
        """Return whether there is a complete request that is not served yet, whatever it is."""
        body = self.consumed + SIZE_PREFIX
        return body <= self.filled and 0 <= _SIZE.unpack_from(self.view, self.consumed)[0] <= self.filled - body

    def forget_served(self) -> None:
        """Use the buffer from its start again if every byte in it was served."""
        if self.consumed == self.filled:
            self.consumed = self.filled = 0
            size = len(self.view)
            if size > RECEIVE_BUFFER_BYTES and (size > KEEP_BUFFER_BYTES or self._memory.is_short):
                self.shrink()

    def make_room(self, frame_bytes: int) -> None:
        """Make room for more of a frame of `frame_bytes` at `consumed`: move it to the front, or grow.

        The buffer grows when it is full. Without memory it is `starved` then.
        """
        held = self.filled - self.consumed
        if self.consumed and self.has_grown and self._memory.is_short:
            self.shrink()
        elif self.consumed + frame_bytes <= len(self.view):
            return
        elif self.consumed:
            self.mapping.move(0, self.consumed, held)
            self.consumed, self.filled = 0, held
        if held == len(self.view) < frame_bytes:
            self._grow(frame_bytes)

    def shrink(self) -> None:
        """Release the memory except for that of the bytes that are not served yet, which move to the front."""
        size = max(self.filled - self.consumed, RECEIVE_BUFFER_BYTES)
        self.starved = False
        self._replace(size, size)
        self._memory.release(self._holder, size - RECEIVE_BUFFER_BYTES)

    def release_pages(self) -> None:
        """Return the memory of an empty buffer to the system."""
        if self.has_grown:
            self.shrink()
        else:
            self.mapping.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        """Release everything now: the garbage collector may come late to a connection and its transport."""
        del self.mapping
        self.view = memoryview(b"")
        self.filled = self.consumed = self.awaited = 0
        self._memory.release(self._holder)
        del self._holder  # without the cycle, the connection is garbage at once

    def _grow(self, frame_bytes: int) -> None:
        """Take memory for the next part of the frame at the front of the full buffer."""
        size = len(self.view)
        mapped = max(len(self.mapping), 1 << (frame_bytes - 1).bit_length())
        more = min(size, GROWTH_BYTES, frame_bytes - size)
        self.starved = not self._memory.take(self._holder, more)
        if not self.starved:
            self._replace(mapped, size + more)

    def _replace(self, mapped: int, size: int) -> None:
        """Use `size` bytes of a mapping of `mapped` bytes, of the present one if it has that size."""
        self.resized += 1
        if mapped != len(self.mapping):
            held = self.filled - self.consumed
            mapping = _anonymous(mapped)
            mapping[:held] = self.view[self.consumed : self.filled]
            self.mapping = mapping
            self.consumed, self.filled = 0, held
        self.view = memoryview(self.mapping)[:size]


def _anonymous(size: int) -> mmap.mmap:
    """Map `size` zero bytes that take no memory before they are touched."""
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
