"""The lz4 frames of message format 0, whose header checksum is wrong.

    4 magic 0x184D2204 (little-endian) | 1 FLG | 1 BD | 8 content size, if FLG bit 3 | 1 HC | blocks

HC is the second byte of XXH32 over FLG up to the content size. Kafka's clients before 0.10 computed it over the magic
as well, and whoever reads format 0 ignores it; our decompressor does not, so it gets the right one. XXH32 of the 2 or
10 bytes is done here: no library of ours has it. Source: Kafka Lz4BlockOutputStream, the xxHash specification.
"""

from __future__ import annotations

from typing import Final

_FLG: Final = 4
_CONTENT_SIZE_BIT: Final = 0x08
_PRIME_1: Final = 0x9E3779B1
_PRIME_2: Final = 0x85EBCA77
_PRIME_3: Final = 0xC2B2AE3D
_PRIME_4: Final = 0x27D4EB2F
_PRIME_5: Final = 0x165667B1
_MASK: Final = 0xFFFF_FFFF


def with_right_header_checksum(frame: bytes | bytearray | memoryview) -> bytearray:
    """A copy of the frame whose HC is right; a frame that is too short for one as it is."""
    fixed = bytearray(frame)
    if len(fixed) <= _FLG + 2:
        return fixed
    checksum_at = _FLG + (10 if fixed[_FLG] & _CONTENT_SIZE_BIT else 2)
    if checksum_at < len(fixed):
        fixed[checksum_at] = xxh32_of_few(bytes(fixed[_FLG:checksum_at])) >> 8 & 0xFF
    return fixed


def xxh32_of_few(data: bytes) -> int:
    """XXH32 with seed 0 of less than 16 bytes."""
    assert len(data) < 16
    mixed = _PRIME_5 + len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        mixed = mixed + int.from_bytes(data[at : at + 4], "little") * _PRIME_3 & _MASK
        mixed = _rotate(mixed, 17) * _PRIME_4 & _MASK
    for byte in data[whole:]:
        mixed = mixed + byte * _PRIME_5 & _MASK
        mixed = _rotate(mixed, 11) * _PRIME_1 & _MASK
    mixed = (mixed ^ mixed >> 15) * _PRIME_2 & _MASK
    mixed = (mixed ^ mixed >> 13) * _PRIME_3 & _MASK
    return mixed ^ mixed >> 16


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK
