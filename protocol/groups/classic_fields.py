"""Kafka's strings, bytes and arrays in messages that are not flexible: prefixed by a length, -1 for null.

    string, nullable string    int16 size in bytes, then UTF-8
    bytes                      int32 size, then the bytes
    array                      int32 count, then the items

Readers raise only DecodeError, also for a length above the remaining bytes. Writers raise ValueError for a string above
32,767 bytes, which a caller has to prevent. Source: Kafka's protocol.types.Type.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.primitives import Reader, Writer

MAX_STRING_BYTES: Final = 0x7FFF


def write_string(writer: Writer, value: str) -> Writer:
    """Write a string that is not null."""
    data = value.encode("utf-8")
    if len(data) > MAX_STRING_BYTES:
        raise ValueError(f"a string of {len(data)} bytes is longer than {MAX_STRING_BYTES}")
    return writer.int16(len(data)).raw(data)


def write_nullable_string(writer: Writer, value: str | None) -> Writer:
    """Write a string or null."""
    return writer.int16(-1) if value is None else write_string(writer, value)


def write_bytes(writer: Writer, value: bytes) -> Writer:
    """Write bytes that are not null."""
    return writer.int32(len(value)).raw(value)


def read_string(reader: Reader) -> str:
    """Read a string; null is an error."""
    value = read_nullable_string(reader)
    if value is None:
        raise DecodeError(f"the string before position {reader.position} is null")
    return value


def read_nullable_string(reader: Reader) -> str | None:
    """Read a string; None for null."""
    size_bytes = reader.int16()
    if size_bytes < 0:
        return None
    try:
        return reader.raw(size_bytes).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DecodeError(f"string that ends at position {reader.position} is not UTF-8: {error}") from error


def read_bytes(reader: Reader) -> bytes:
    """Read bytes; null is an error."""
    return reader.raw(reader.int32())  # a negative size is refused there


def read_array_length(reader: Reader) -> int:
    """Read the number of items; null is an error, and so is a number above the remaining bytes."""
    count = reader.int32()
    if not 0 <= count <= reader.remaining:
        raise DecodeError(
            f"array of {count} items at position {reader.position}, but {reader.remaining} bytes are left"
        )
    return count
