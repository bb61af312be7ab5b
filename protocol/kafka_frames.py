"""What Kafka's decoders read where cramjam reads more, or less.

    lz4   One frame, with independent blocks and without a dictionary. Kafka verifies the checksums of the header and of
          the blocks. It skips content size and content checksum, and ignores bytes after the frame.
    gzip  Members, up to bytes that are no member's header. Reserved flags are ignored.

Kafka takes some more that no client writes, and that are refused here. Two are ambiguous, because other decoders read
on where Kafka's stops: an lz4 frame followed by another, and an lz4 block of no bytes that is not directly before the
end mark. The others are a cut zstd frame after a whole one, and a snappy stream that ends with 16 bytes that only begin
like a header.
tests/support/kafka/bodies.py has a case of each. Source: Kafka's Lz4BlockInputStream, java.util.zip.GZIPInputStream
(Java 17).
"""

from __future__ import annotations

import re
import struct
import zlib
from typing import Final

from barnabas.protocol.errors import DecompressionError, DecompressionLimitError
from barnabas.protocol.records.kernels.kernel import find_lz4_end

_LZ4_MAGIC: Final = bytes.fromhex("04224d18")
_LZ4_DESCRIPTOR: Final = 4
_LZ4_HEADER_SIZE: Final = 7
_LZ4_DICTIONARY: Final = 0x01
_LZ4_CONTENT_CHECKSUM: Final = 0x04
_LZ4_CONTENT_SIZE: Final = 0x08
_LZ4_BLOCK_CHECKSUM: Final = 0x10
_LZ4_INDEPENDENT: Final = 0x20
_LZ4_END_MARK: Final = bytes(4)
_LZ4_NEXT_FRAME: Final = re.compile(rb"\x04\x22\x4d\x18|[\x50-\x5f]\x2a\x4d\x18", re.DOTALL)
"""Magic of a frame, or of one to be skipped."""

_GZIP_MAGIC_AND_DEFLATE: Final = b"\x1f\x8b\x08"
_GZIP_HEADER_SIZE: Final = 10
_GZIP_TRAILER_SIZE: Final = 8
_GZIP_NO_MEMBER_BYTES: Final = 18
"""So few bytes after a member are not even looked at."""
_GZIP_HEADER_CHECKSUM: Final = 0x02
_GZIP_EXTRA: Final = 0x04
_GZIP_NAME: Final = 0x08
_GZIP_COMMENT: Final = 0x10
_GZIP_TEXT_END: Final = re.compile(rb"\0")
_GZIP_MEMBERS_MAX: Final = 100
"""So that a hostile batch costs the event loop a millisecond. Clients write one."""
_INFLATE_BYTES: Final = 4096
"""Input for one call: zlib copies what follows a member."""


def lz4_frame(data: memoryview) -> memoryview:
    """Return the frame that Kafka reads, without bytes after it. Raises DecompressionError if Kafka reads none."""
    _, end = _lz4_blocks(data)
    return data[: end + (8 if data[_LZ4_DESCRIPTOR] & _LZ4_CONTENT_CHECKSUM else 4)]


def lz4_frame_without_content_checks(data: memoryview) -> bytes:
    """Return the frame without content size and content checksum. Raises DecompressionError as `lz4_frame`."""
    from xxhash import xxh32_intdigest  # 9 ms of an import

    blocks, end = _lz4_blocks(data)
    if xxh32_intdigest(data[_LZ4_DESCRIPTOR : blocks - 1]) >> 8 & 0xFF != data[blocks - 1]:
        raise DecompressionError("the header of the lz4 frame has a wrong checksum")
    flags = data[_LZ4_DESCRIPTOR] & ~(_LZ4_CONTENT_SIZE | _LZ4_CONTENT_CHECKSUM)
    descriptor = bytes((flags, data[_LZ4_DESCRIPTOR + 1]))
    checksum = bytes((xxh32_intdigest(descriptor) >> 8 & 0xFF,))
    return b"".join((_LZ4_MAGIC, descriptor, checksum, data[blocks:end], _LZ4_END_MARK))


def _lz4_blocks(data: memoryview) -> tuple[int, int]:
    """Return the positions of the first block and of the end mark. Raises DecompressionError."""
    if len(data) < _LZ4_HEADER_SIZE or bytes(data[:_LZ4_DESCRIPTOR]) != _LZ4_MAGIC:
        raise DecompressionError("records do not begin with an lz4 frame")
    flags = data[_LZ4_DESCRIPTOR]
    if not flags & _LZ4_INDEPENDENT:
        raise DecompressionError("the lz4 frame has linked blocks, which Kafka's clients do not read")
    if flags & _LZ4_DICTIONARY:
        raise DecompressionError("the lz4 frame needs a dictionary, which Kafka's clients do not have")
    blocks = _LZ4_HEADER_SIZE + (8 if flags & _LZ4_CONTENT_SIZE else 0)
    gap = 4 if flags & _LZ4_BLOCK_CHECKSUM else 0
    end = find_lz4_end(data, blocks, gap)
    if end >= 0 and bytes(data[end : end + 4]) != _LZ4_END_MARK:
        end += 4 + data[end] + gap
        if bytes(data[end : end + 4]) != _LZ4_END_MARK:
            raise DecompressionError("the lz4 frame has a block of no bytes, where Kafka's clients stop")
    behind = end + (8 if flags & _LZ4_CONTENT_CHECKSUM else 4)
    if end < 0 or behind > len(data):
        raise DecompressionError("the lz4 frame is cut short")
    if _LZ4_NEXT_FRAME.match(data[behind : behind + 4]):
        raise DecompressionError("another lz4 frame follows the first, which is the only one that Kafka's clients read")
    return blocks, end


def inflate_members(data: memoryview, max_bytes: int) -> bytes:
    """Decompress gzip members up to bytes that are none. Raises DecompressionError."""
    inflated = bytearray()
    start = _gzip_header_end(data, 0)
    if start is None:
        raise DecompressionError("records do not begin with a gzip member")
    for _ in range(_GZIP_MEMBERS_MAX):
        before = len(inflated)
        start = _inflate_member(data, start, inflated, max_bytes)
        with memoryview(inflated) as view:
            checksum, size = zlib.crc32(view[before:]), len(inflated) - before & 0xFFFF_FFFF
        if bytes(data[start : start + _GZIP_TRAILER_SIZE]) != struct.pack("<II", checksum, size):
            raise DecompressionError("a gzip member has another checksum or size")
        start += _GZIP_TRAILER_SIZE
        following = _gzip_header_end(data, start) if len(data) - start > _GZIP_NO_MEMBER_BYTES else None
        if following is None:
            return bytes(inflated)
        start = following
    raise DecompressionError(f"there are more than {_GZIP_MEMBERS_MAX} gzip members, and a fault after one of them")


def _inflate_member(data: memoryview, start: int, inflated: bytearray, max_bytes: int) -> int:
    """Append what the member inflates to; return the end of its compressed bytes, which begin at `start`."""
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    while not inflater.eof:
        if start >= len(data):
            raise DecompressionError("a gzip member is cut short")
        fed = data[start : start + _INFLATE_BYTES]
        start += len(fed)
        try:
            inflated += inflater.decompress(fed, max_bytes - len(inflated) + 1)
        except zlib.error as error:
            raise DecompressionError(f"records are not gzip: {error}") from error
        if len(inflated) > max_bytes:
            raise DecompressionLimitError.of("gzip", max_bytes)
    return start - len(inflater.unused_data)


def _gzip_header_end(data: memoryview, start: int) -> int | None:
    """Return the end of the member's header at `start`, or None if there is none."""
    end = start + _GZIP_HEADER_SIZE
    if len(data) < end or bytes(data[start : start + 3]) != _GZIP_MAGIC_AND_DEFLATE:
        return None
    flags = data[start + 3]
    if flags & _GZIP_EXTRA:
        end += 2 + int.from_bytes(data[end : end + 2], "little")
    for flag in (_GZIP_NAME, _GZIP_COMMENT):
        if flags & flag:
            text = _GZIP_TEXT_END.search(data, end)
            if text is None:
                return None
            end = text.end()
    if flags & _GZIP_HEADER_CHECKSUM:
        checksum = zlib.crc32(data[start:end]) & 0xFFFF
        if int.from_bytes(data[end : end + 2], "little") != checksum:
            return None
        end += 2
    return end if end <= len(data) else None
