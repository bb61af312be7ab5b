"""Protobuf's wire format without a schema: field numbers with their values.

Bytes are shown as text where they are, as a message where they can be one, else as hex.
"""

from __future__ import annotations

from typing import Any, Final

_VARINT: Final = 0
_FIXED64: Final = 1
_BYTES: Final = 2
_FIXED32: Final = 5
_VARINT_BYTES_MAX: Final = 10
_DEPTH_MAX: Final = 20


def read_message(data: bytes, depth: int = 0) -> dict[str, Any]:
    """Return a message's fields by number; a repeated one is a list. Raises ValueError."""
    if depth > _DEPTH_MAX:
        raise ValueError("the message is nested too deeply")
    found: dict[str, Any] = {}
    position = 0
    while position < len(data):
        tag, position = read_varint(data, position)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise ValueError("there is no field 0")
        value: Any
        if kind == _VARINT:
            value, position = read_varint(data, position)
        elif kind == _BYTES:
            size, position = read_varint(data, position)
            value = _content(_part(data, position, size), depth)
            position += size
        elif kind in {_FIXED32, _FIXED64}:
            size = 8 if kind == _FIXED64 else 4
            value = "0x" + _part(data, position, size)[::-1].hex()
            position += size
        else:
            raise ValueError(f"wire type {kind} is not known")
        name = str(number)
        if name not in found:
            found[name] = value
        elif isinstance(found[name], list):
            found[name].append(value)
        else:
            found[name] = [found[name], value]
    return found


def skip_indexes(data: bytes, position: int) -> int:
    """Return where the message begins behind the indexes of its type, which Confluent's serializer writes."""
    count, position = read_varint(data, position)
    for _ in range(count >> 1):  # zigzag; 0 is the first message
        _, position = read_varint(data, position)
    return position


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return a number and the position behind it. Raises ValueError."""
    value = 0
    for index in range(_VARINT_BYTES_MAX):
        if position >= len(data):
            raise ValueError("the message is cut")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, position
    raise ValueError("a number is longer than ten bytes")


def _part(data: bytes, position: int, size: int) -> bytes:
    if position + size > len(data):
        raise ValueError("the message is cut")
    return data[position : position + size]


def _content(data: bytes, depth: int) -> Any:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if text.isprintable():
        return text
    try:
        return read_message(data, depth + 1)
    except ValueError:
        return "0x" + data.hex()
