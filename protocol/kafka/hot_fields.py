"""The pieces of messages that are read and written by hand: Produce and Fetch, which every record passes by.

Why by hand: the tables of schema.py cost a Python call for every field and copy bytes, while a produced batch has to
stay a view of the receive buffer. A fetch of one partition is read in 4 us, a one-record produce is answered in 1.2.
Request readers trust nothing: a body that is cut short raises struct.error or IndexError, which `cut_short` turns
into a DecodeError, and slices are checked against their ends.

    classic    string: int16 length (-1 null), UTF-8          array: int32 count (-1 null)
    flexible   both: unsigned varint length + 1 (0 null)      tagged fields end every structure
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, TypeVar

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.varint import read_unsigned, unsigned
from barnabas.protocol.wire.structures import MAX_ITEMS

INT16 = struct.Struct(">h")
INT32 = struct.Struct(">i")
ID_SIZE: Final = 16
"""Size of a topic id in bytes."""

NO_TAGS: Final = b"\x00"

Request = TypeVar("Request")

ReadString = Callable[[memoryview, int], tuple[str | None, int]]
"""`read_string` or `read_compact_string`."""

_unpack_int16 = INT16.unpack_from
_unpack_int32 = INT32.unpack_from


def cut_short(error: Exception) -> DecodeError:
    """Return the DecodeError for a struct.error or an IndexError of a reader."""
    return DecodeError(f"the request ends within a field: {error}")


def decoder(decode: Callable[[int, memoryview], Request]) -> Callable[[int, memoryview], Request]:
    """Wrap a reader of requests so that a body that is cut short is a DecodeError."""

    def decode_request(version: int, body: memoryview) -> Request:
        try:
            return decode(version, body)
        except (struct.error, IndexError) as error:
            raise cut_short(error) from error

    return decode_request


def read_string(body: memoryview, position: int) -> tuple[str | None, int]:
    """Read a classic nullable string; return it and the position after it."""
    (length,) = _unpack_int16(body, position)
    start = position + 2
    return (None, start) if length < 0 else _text(body, start, start + length)


def read_compact_string(body: memoryview, position: int) -> tuple[str | None, int]:
    """Read a compact nullable string; return it and the position after it."""
    size, start = read_unsigned(body, position)
    return (None, start) if size == 0 else _text(body, start, start + size - 1)


def read_present(read: ReadString, body: memoryview, position: int, what: str) -> tuple[str, int]:
    """Read a non-null string with `read`; `what` names it in the error. Returns it and the position after it."""
    value, position = read(body, position)
    if value is None:
        raise DecodeError(f"{what} is null")
    return value, position


def read_count(body: memoryview, position: int) -> tuple[int, int]:
    """Read the count of a classic array; return it and the position after it. Raises DecodeError for null."""
    (count,) = _unpack_int32(body, position)
    if count < 0:
        raise null_array()
    return count, position + 4


def read_compact_count(body: memoryview, position: int) -> tuple[int, int]:
    """Read the count of a compact array; return it and the position after it. Raises DecodeError for null."""
    size, position = read_unsigned(body, position)
    if size == 0:
        raise null_array()
    return size - 1, position


def null_array() -> DecodeError:
    """Return the DecodeError for null instead of an array."""
    return DecodeError("an array that may not be null is null")


def read_topic_id(body: memoryview, position: int) -> tuple[bytes, int]:
    """Read 16 bytes; return them and the position after them."""
    end = position + ID_SIZE
    topic_id = bytes(body[position:end])
    if len(topic_id) != ID_SIZE:
        raise DecodeError("the request ends within a topic id")
    return topic_id, end


def read_topic(body: memoryview, position: int, by_id: bool, read_text: ReadString) -> tuple[str, bytes | None, int]:
    """A topic's name, or "" and its id in a version that names topics by id, and the position after it."""
    if by_id:
        topic_id, position = read_topic_id(body, position)
        return "", topic_id, position
    name, position = read_present(read_text, body, position, "a topic's name")
    return name, None, position


def skip_tags(body: memoryview, position: int) -> int:
    """Return the position after a structure's tagged fields."""
    if body[position] == 0:
        return position + 1
    count, position = read_unsigned(body, position)
    for _ in range(count):  # ends at the first missing byte, however large the count
        _, position = read_unsigned(body, position)
        size, position = read_unsigned(body, position)
        position += size
        if position > len(body):
            raise DecodeError("a tagged field is longer than its request")
    return position


def count_items(items: int, more: int) -> int:
    """Return `items + more`. Raises DecodeError above MAX_ITEMS."""
    items += more
    if items > MAX_ITEMS:
        raise DecodeError(f"more than {MAX_ITEMS} topics and partitions in one request")
    return items


def string(value: str) -> bytes:
    """Encode a classic string."""
    data = value.encode()
    return INT16.pack(len(data)) + data


def compact_string(value: str) -> bytes:
    """Encode a compact string."""
    data = value.encode()
    return unsigned(len(data) + 1) + data


def _text(body: memoryview, start: int, end: int) -> tuple[str, int]:
    if end > len(body):
        raise DecodeError(f"a string of {end - start} bytes, but {max(0, len(body) - start)} are left")
    try:
        return str(body[start:end], "utf-8"), end
    except UnicodeDecodeError as error:
        raise DecodeError(f"a string that is not UTF-8: {error}") from error
