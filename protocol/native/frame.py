"""The native frame: a msgpack header, then the record batches.

    frame   := int32 size | uint8 magic = 0xB7 | uint24 header_size | header | records
    header  := msgpack array [api, version, correlation_id, client_id, body]      request
               msgpack array [api, version, correlation_id, error_code, body]     response

All integers are big-endian; `size` counts the bytes after it. Records are outside of the msgpack value, so that neither
side copies them and the broker can send them from the file.
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

import msgpack

from barnabas.protocol.framing import NATIVE_MAGIC, SIZE_PREFIX, FrameError

MAX_HEADER_BYTES: Final = (1 << 24) - 1
"""The largest uint24."""

MAX_REQUEST_HEADER_BYTES: Final = 2 * 1024 * 1024
"""Limit of a request's header: 10,000 topics with long names fit. A decoded header takes up to 70 times its bytes."""

MAX_REQUEST_VALUES: Final = 250_000
"""Values in all arrays of one request: room for 60,000 partitions. Serving one holds the event loop for up to 10 us."""

MAX_CLIENT_ID_CHARS: Final = 8_191
"""As many as always fit a string of 32,767 bytes, Kafka's longest: a character has up to four."""

_FEW_BYTES: Final = 64 * 1024
"""Headers up to this size have few values and are not counted."""

_PREFIX: Final = struct.Struct(">iI")
_SIZE: Final = struct.Struct(">i")
_MAGIC_AND_SIZE: Final = struct.Struct(">I")
_HEADER_FIELDS: Final = 5


class RequestHeader(NamedTuple):
    """A request whose body is not decoded yet. `records` is a view of the frame."""

    api: int
    version: int
    correlation_id: int
    client_id: str | None
    body: Any
    records: memoryview

    def without_frame(self) -> RequestHeader:
        """Return the header without views of the frame, for an answer after the frame's buffer is reused."""
        return self._replace(body=None, records=memoryview(b""))


class HeaderTooLargeError(ValueError):
    """A header or frame that is too large for its size field."""


def read_request(frame: memoryview) -> RequestHeader:
    """Read the header of a request's frame (without its size field). Raises FrameError: close the connection."""
    header, records = split_frame(frame, MAX_REQUEST_HEADER_BYTES)
    ensure_few_values(header, len(frame) - len(records))
    api, version, correlation_id, client_id, body = header
    if not (type(api) is int and type(version) is int and type(correlation_id) is int):
        raise FrameError("header does not begin with the integers api, version, correlation_id")
    if client_id is not None and type(client_id) is not str:
        raise FrameError("client_id is neither a string nor nil")
    if client_id is not None and len(client_id) > MAX_CLIENT_ID_CHARS:
        raise FrameError(f"client_id has {len(client_id)} characters, more than {MAX_CLIENT_ID_CHARS}")
    return RequestHeader(api, version, correlation_id, client_id, body, records)


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


def with_field(frame: bytes, name: str, value: Any) -> bytes:
    """Return the bytes of an answer's frame up to its records with one more field in its body."""
    (size,) = _SIZE.unpack_from(frame)
    header, _ = split_frame(memoryview(frame)[SIZE_PREFIX:])
    header[-1][name] = value
    return pack_header(header, size + SIZE_PREFIX - len(frame))
