"""Variable-length integers in Kafka's encoding: 7 bits per byte, lowest first; the high bit is set on all but the last.

    unsigned varint   0 .. 2^32-1     1 to 5 bytes     lengths and tags of flexible messages
    unsigned varlong  0 .. 2^64-1     1 to 10 bytes
    varint, varlong   zigzag (0, -1, 1, -2, ... become 0, 1, 2, 3, ...) of an int32 or int64, then as above

Longer encodings than needed are accepted, as in Java; bits beyond the 32nd are refused (Java drops them, but no client
writes them). The varints of records are read by the kernels. Source: Kafka's org.apache.kafka.common.utils.ByteUtils.
"""

from __future__ import annotations

from barnabas.protocol.errors import DecodeError

UINT32_MAX = 0xFFFF_FFFF
UINT64_MAX = 0xFFFF_FFFF_FFFF_FFFF

_MAX_SHIFT = 28
_ONE_BYTE = [bytes((value,)) for value in range(0x80)]


def zigzag64(value: int) -> int:
    """Map an int64 to a uint64, small magnitudes first. Raises ValueError out of range."""
    if not -0x8000_0000_0000_0000 <= value <= 0x7FFF_FFFF_FFFF_FFFF:
        raise ValueError(f"{value} does not fit an int64")
    return (value << 1) ^ (value >> 63)


def append_unsigned(target: bytearray, value: int) -> None:
    """Append an integer to `target`. Raises ValueError when it is negative or above 2^64-1."""
    if not 0 <= value <= UINT64_MAX:
        raise ValueError(f"{value} does not fit an unsigned varlong")
    while value > 0x7F:
        target.append(value & 0x7F | 0x80)
        value >>= 7
    target.append(value)


def unsigned(value: int) -> bytes:
    """Return an unsigned varint, as messages have them: mostly one byte. Raises ValueError as `append_unsigned`."""
    if 0 <= value < 0x80:
        return _ONE_BYTE[value]
    out = bytearray()
    append_unsigned(out, value)
    return bytes(out)


def read_unsigned(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """Return (value, position after it), fast for one and two bytes.

    Raises IndexError at the end of the data, otherwise as `read_unsigned32`.
    """
    value = data[position]
    if value < 0x80:
        return value, position + 1
    second = data[position + 1]
    if second < 0x80:
        return value & 0x7F | second << 7, position + 2
    return read_unsigned32(data, position)


def read_unsigned32(data: bytes | bytearray | memoryview, position: int) -> tuple[int, int]:
    """Return (value, position after it). Raises DecodeError when it is cut short or exceeds 32 bits."""
    value = shift = 0
    at, size = position, len(data)
    while at < size:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > UINT32_MAX:
                break
            return value, at
        shift += 7
        if shift > _MAX_SHIFT:
            break
    else:
        raise DecodeError(f"varint at position {position} is cut short by the end at {size}")
    raise DecodeError(f"varint at position {position} does not fit 32 bits")
