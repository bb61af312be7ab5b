"""ASN.1 elements in DER, for keys and stores that no tool writes."""

from __future__ import annotations

from typing import Final

INTEGER: Final = 0x02
OCTETS: Final = 0x04
OID: Final = 0x06
SEQUENCE: Final = 0x30


def element(tag: int, *parts: bytes) -> bytes:
    """Return one element."""
    content = b"".join(parts)
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content


def integer(value: int) -> bytes:
    """Return a positive INTEGER."""
    return element(INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "big"))
