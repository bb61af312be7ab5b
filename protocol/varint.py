"""Variable-length integers in Kafka's encoding: 7 bits per byte, lowest first; the high bit is set on all but the last.

    unsigned varint   0 .. 2^32-1     1 to 5 bytes     lengths and tags of flexible messages
    unsigned varlong  0 .. 2^64-1     1 to 10 bytes
    varint, varlong   zigzag (0, -1, 1, -2, ... become 0, 1, 2, 3, ...) of an int32 or int64, then as above

Longer encodings than needed are accepted, as in Java; bits beyond the 32nd or 64th are refused (Java drops them, but no
client writes them). Source: Kafka's org.apache.kafka.common.utils.ByteUtils.
"""

from __future__ import annotations

from barnabas.protocol.errors import DecodeError

UINT32_MAX = 0xFFFF_FFFF
UINT64_MAX = 0xFFFF_FFFF_FFFF_FFFF

_VARINT_MAX_SHIFT = 28
_VARLONG_MAX_SHIFT = 63


def zigzag32(value: int) -> int:
    """Map an int32 to a uint32, small magnitudes first. Raises ValueError out of range."""
    if not -0x8000_0000 <= value <= 0x7FFF_FFFF:
        raise ValueError(f"{value} does not fit an int32")
    return (value << 1) ^ (value >> 31)


def zigzag64(value: int) -> int:
    """Map an int64 to a uint64, small magnitudes first. Raises ValueError out of range."""
    if not -0x8000_0000_0000_0000 <= value <= 0x7FFF_FFFF_FFFF_FFFF:
        raise ValueError(f"{value} does not fit an int64")
    return (value << 1) ^ (value >> 63)


def unzigzag(value: int) -> int:
    """Invert `zigzag32` or `zigzag64`."""
    return (value >> 1) ^ -(value & 1)


def append_unsigned(target: bytearray, value: int) -> None:
    """Append an integer to `target`. Raises ValueError when it is negative or above 2^64-1."""
    if not 0 <= value <= UINT64_MAX:
        raise ValueError(f"{value} does not fit an unsigned varlong")
    while value > 0x7F:
        target.append(value & 0x7F | 0x80)
        value >>= 7
    target.append(value)


def unsigned_size_bytes(value: int) -> int:
    """Return the bytes that `append_unsigned` writes for `value`."""
    return (value.bit_length() + 6) // 7 if value else 1


def varint_size_bytes(value: int) -> int:
    """Return the bytes of the zigzag encoding of an int32."""
    return unsigned_size_bytes(zigzag32(value))


def varlong_size_bytes(value: int) -> int:
    """Return the bytes of the zigzag encoding of an int64."""
    return unsigned_size_bytes(zigzag64(value))


def read_unsigned32(data: bytes | bytearray | memoryview, position: int) -> tuple[int, int]:
    """Return (value, position after it). Raises DecodeError when it is cut short or exceeds 32 bits."""
    return _read(data, position, _VARINT_MAX_SHIFT, UINT32_MAX)


def read_unsigned64(data: bytes | bytearray | memoryview, position: int) -> tuple[int, int]:
    """Return (value, position after it). Raises DecodeError when it is cut short or exceeds 64 bits."""
    return _read(data, position, _VARLONG_MAX_SHIFT, UINT64_MAX)


def _read(data: bytes | bytearray | memoryview, position: int, max_shift: int, maximum: int) -> tuple[int, int]:
    value = shift = 0
    at, size = position, len(data)
    while at < size:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > maximum:
                break
            return value, at
        shift += 7
        if shift > max_shift:
            break
    else:
        raise DecodeError(f"varint at position {position} is cut short by the end at {size}")
    raise DecodeError(f"varint at position {position} does not fit {maximum.bit_length()} bits")
