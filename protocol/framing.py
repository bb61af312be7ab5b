"""The frame that both dialects share: an int32 size, then that many bytes, the first of which identifies the dialect.

    frame := int32 size | size bytes        big-endian; `size` does not count itself

Kafka's first field is an int16 api_key below 256, so its first byte is 0x00; a native frame has its magic 0xB7 there.
"""

from __future__ import annotations

import struct
from typing import Final

from barnabas.protocol.errors import DecodeError

SIZE_PREFIX = 4
"""Size of the size field in bytes."""

KAFKA_MAGIC = 0x00
NATIVE_MAGIC = 0xB7

_SIZE = struct.Struct(">i")

_STRANGERS: Final = {
    b"\x16\x03": ": this is how TLS begins, and there is none here (security.protocol=PLAINTEXT)",
    **dict.fromkeys((b"GET ", b"POST", b"HEAD", b"PUT "), ": this is how HTTP begins"),
}
"""First bytes of other protocols, which would be read as very large frame sizes."""


class FrameError(DecodeError):
    """A frame after which the stream cannot be trusted: the connection must be closed."""


def frame_size(buffer: bytearray | memoryview, position: int, max_frame_bytes: int) -> int:
    """Return the size field at `position`; the buffer must contain its 4 bytes.

    Raises FrameError if the size is not positive or above `max_frame_bytes` (socket.request.max.bytes).
    """
    size: int = _SIZE.unpack_from(buffer, position)[0]
    if 0 < size <= max_frame_bytes:
        return size
    if size <= 0:
        raise FrameError(f"frame size {size} is not positive")
    begins = bytes(buffer[position : position + SIZE_PREFIX])
    hint = next((words for start, words in _STRANGERS.items() if begins.startswith(start)), "")
    raise FrameError(f"frame size {size} is above socket.request.max.bytes={max_frame_bytes}{hint}")
