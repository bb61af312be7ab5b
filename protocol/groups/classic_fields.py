"""Kafka's strings and bytes of messages that are not flexible: a length in front of them, -1 for null.

    string, nullable string    int16 size in bytes, then UTF-8
    bytes                      int32 size, then the bytes
    array                      int32 count, then the items

The functions to read raise DecodeError only, and believe a length as far as bytes are left; those to write raise
ValueError for a string above 32,767 bytes, which a caller has to prevent. Source: Kafka's protocol.types.Type.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.primitives import Reader, Writer

MAX_STRING_BYTES: Final = 0x7FFF


def write_string(writer: Writer, value: str) -> Writer:
    """A string that is not null."""
    data = value.encode("utf-8")
    if len(data) > MAX_STRING_BYTES:
        raise ValueError(f"a string of {len(data)} bytes is longer than {MAX_STRING_BYTES}")
    return writer.int16(len(data)).raw(data)


def write_nullable_string(writer: Writer, value: str | None) -> Writer:
    """A string, or null."""
    return writer.int16(-1) if value is None else write_string(writer, value)


def write_bytes(writer: Writer, value: bytes) -> Writer:
    """Bytes that are not null."""
    return writer.int32(len(value)).raw(value)


def read_string(reader: Reader) -> str:
    """A string; null is an error."""
    value = read_nullable_string(reader)
    if value is None:
        raise DecodeError(f"the string before position {reader.position} is null")
    return value


def read_nullable_string(reader: Reader) -> str | None:
    """A string, or None."""
    size_bytes = reader.int16()
    if size_bytes < 0:
        return None
    try:
        return reader.raw(size_bytes).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DecodeError(f"string that ends at position {reader.position} is not UTF-8: {error}") from error


def read_bytes(reader: Reader) -> bytes:
    """Bytes; null is an error."""
    return reader.raw(reader.int32())  # a negative size is refused there


def read_array_length(reader: Reader) -> int:
    """The count of the items that follow; null is an error, and so is a count above the bytes that are left."""
    count = reader.int32()
    if not 0 <= count <= reader.remaining:
        raise DecodeError(
            f"array of {count} items at position {reader.position}, but {reader.remaining} bytes are left"
        )
    return count
