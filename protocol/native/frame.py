"""The native frame: a msgpack header, then the record batches.

    frame   := int32 size | uint8 magic = 0xB7 | uint24 header_size | header | records
    header  := msgpack array [api, version, correlation_id, client_id, body]      request
               msgpack array [api, version, correlation_id, error_code, body]     response

All integers are big-endian; `size` counts the bytes after it. Records are outside of the msgpack value, so that neither
side copies them and the broker can send them from the file.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import msgpack

from barnabas.protocol.framing import NATIVE_MAGIC, FrameError
from barnabas.protocol.messages.api_key import ApiKey

MAX_HEADER_BYTES = (1 << 24) - 1
"""The largest uint24."""

MAX_REQUEST_HEADER_BYTES = 2 * 1024 * 1024
"""Limit of a request's header: 10,000 topics with long names fit. A decoded header takes up to 70 times its bytes."""

MAX_REQUEST_VALUES = 250_000
"""Values in all arrays of one request: room for 60,000 partitions. Serving one holds the event loop for up to 10 us."""

_FEW_BYTES = 64 * 1024
"""Headers up to this size have few values and are not counted."""

_PREFIX = struct.Struct(">iI")
_MAGIC_AND_SIZE = struct.Struct(">I")
_HEADER_FIELDS = 5

NUMBERS: Final[dict[int, int]] = {
    ApiKey.MIRRORS: 1000,
    ApiKey.STANDBY: 1001,
    ApiKey.EXPLAIN_GROUP: 1003,
    ApiKey.EXPLAIN_START: 1004,
    ApiKey.EXPLAIN_TOPIC: 1005,
}
"""The numbers in frames, where they are not the keys: a standby and its active broker may be of different versions."""

KEYS: Final[dict[int, int]] = {number: key for key, number in NUMBERS.items()}
"""The keys, where they are not the numbers in frames."""


def ensure_few_values(header: list[Any], header_bytes: int) -> None:
    """Raise FrameError if the arrays in a header have more than MAX_REQUEST_VALUES values."""
    if header_bytes <= _FEW_BYTES:
        return
    left = MAX_REQUEST_VALUES
    unseen: list[Any] = [header]
    while unseen:
        value = unseen.pop()
        left -= len(value)
        if left < 0:
            raise FrameError(f"more than {MAX_REQUEST_VALUES} values in one request")
        unseen.extend(
            [each for each in (value.values() if type(value) is dict else value) if type(each) in (list, dict)]
        )


class HeaderTooLargeError(ValueError):
    """A header or frame that is too large for its size field."""


def pack_header(header: list[Any], records_bytes: int) -> bytes:
    """Return the bytes of a frame up to its records, of which `records_bytes` follow.

    Raises HeaderTooLargeError when the header does not fit the uint24 or the frame the int32.
    """
    packed: bytes = msgpack.packb(header)
    header_size = len(packed)
    if header_size > MAX_HEADER_BYTES:
        raise HeaderTooLargeError(f"header of {header_size} bytes is above {MAX_HEADER_BYTES}")
    size = 4 + header_size + records_bytes
    if size > 0x7FFF_FFFF:
        raise HeaderTooLargeError(f"frame of {size} bytes is above 2147483647")
    return _PREFIX.pack(size, NATIVE_MAGIC << 24 | header_size) + packed


def split_frame(frame: memoryview, max_header_bytes: int = MAX_HEADER_BYTES) -> tuple[list[Any], memoryview]:
    """Split a frame without its size field into (header's five values, records). Raises FrameError."""
    if len(frame) < 4:
        raise FrameError(f"native frame of {len(frame)} bytes has no header size")
    magic_and_size: int = _MAGIC_AND_SIZE.unpack_from(frame)[0]
    if magic_and_size >> 24 != NATIVE_MAGIC:
        raise FrameError(f"magic 0x{magic_and_size >> 24:02x} is not 0x{NATIVE_MAGIC:02x}")
    end = 4 + (magic_and_size & MAX_HEADER_BYTES)
    if end > len(frame):
        raise FrameError(f"header of {end - 4} bytes is longer than its frame, which has {len(frame) - 4} left")
    if end - 4 > max_header_bytes:
        raise FrameError(f"header of {end - 4} bytes is above {max_header_bytes}")
    try:
        header = msgpack.unpackb(frame[4:end])
    except (ValueError, msgpack.exceptions.UnpackException) as error:
        raise FrameError(f"header is not msgpack: {type(error).__name__}: {error}") from error
    if type(header) is not list or len(header) != _HEADER_FIELDS:
        raise FrameError(f"header is not an array of {_HEADER_FIELDS} values")
    return header, frame[end:]
