"""The lz4 frames of message format 0, whose header checksum is wrong.

    4 magic 0x184D2204 (little-endian) | 1 FLG | 1 BD | 8 content size, if FLG bit 3 | 1 HC | blocks

HC is the second byte of XXH32 over FLG up to the content size. Kafka's clients before 0.10 computed it over the magic
as well, and readers of format 0 ignore it; our decompressor does not, so it gets the right one. Source: Kafka
Lz4BlockOutputStream, the xxHash specification.
"""

from __future__ import annotations

from typing import Final

_FLG: Final = 4
_CONTENT_SIZE_BIT: Final = 0x08


def with_right_header_checksum(frame: bytes | bytearray | memoryview) -> bytearray:
    """Return a copy of the frame with the right HC; a frame that is too short for one is copied unchanged."""
    from xxhash import xxh32_intdigest  # only format 0 needs it: 9 ms of an import

    fixed = bytearray(frame)
    if len(fixed) <= _FLG + 2:
        return fixed
    checksum_at = _FLG + (10 if fixed[_FLG] & _CONTENT_SIZE_BIT else 2)
    if checksum_at < len(fixed):
        fixed[checksum_at] = xxh32_intdigest(bytes(fixed[_FLG:checksum_at])) >> 8 & 0xFF
    return fixed
