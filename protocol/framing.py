"""Frames, common to both dialects: an int32 size, then that many bytes. The first byte identifies the dialect.

    frame := int32 size | size bytes        big-endian; `size` does not count itself

A native frame begins with the magic 0xB7, every other frame is one of Kafka's protocol. Those begin with an int16
api_key, which no API has below 0, so that no first byte of theirs is 0xB7.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from barnabas.protocol.errors import DecodeError

SIZE_PREFIX = 4
"""Size of the size field in bytes."""

NATIVE_MAGIC = 0xB7

_SIZE = struct.Struct(">i")

_OTHER_PROTOCOLS: Final = {
    b"\x16\x03": ": the bytes look like TLS; does the client use SSL or SASL_SSL on a listener without it?",
    **dict.fromkeys((b"GET ", b"POST", b"HEAD", b"PUT "), ": the bytes look like an HTTP request"),
}
"""First bytes of other protocols and the hint for the error text. As a size field they are very large numbers."""


class FrameError(DecodeError):
    """Invalid frame size. The rest of the stream cannot be parsed, so the connection must be closed."""


REQUEST_LIMIT: Final = "socket.request.max.bytes"
"""The property that limits a connection's frames."""


class FrameLimit(NamedTuple):
    """Size of the largest frame, and the property or, in a phrase with blanks, the rule that decides it."""

    max_bytes: int
    name: str


def frame_size(buffer: bytearray | memoryview, position: int, max_frame_bytes: int, limit: str = REQUEST_LIMIT) -> int:
    """Return the size field at `position`; the buffer must contain its 4 bytes.

    Raises FrameError if the size is not positive or above `max_frame_bytes`. `limit` names what decides that, as in
    FrameLimit.
    """
    size: int = _SIZE.unpack_from(buffer, position)[0]
    if 0 < size <= max_frame_bytes:
        return size
    if size <= 0:
        raise FrameError(f"frame size {size} is not positive")
    first_bytes = bytes(buffer[position : position + SIZE_PREFIX])
    hint = next((hint for start, hint in _OTHER_PROTOCOLS.items() if first_bytes.startswith(start)), "")
    largest = f"{max_frame_bytes} bytes, {limit}" if " " in limit else f"{limit}={max_frame_bytes}"
    raise FrameError(f"frame size {size} is above {largest}{hint}")
