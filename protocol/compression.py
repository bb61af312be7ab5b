"""The compression codecs of record batches, as Kafka's clients write them, by cramjam; decompression is bounded.

    0 none
    1 gzip    one or more gzip members
    2 snappy  written: the xerial framing of Java clients, `82 "SNAPPY" 00`, int32 1, int32 1 (its versions),
              then per 32 KiB: int32 size, raw snappy block. Read: that, several of them, or one raw block (librdkafka)
    3 lz4     written: one frame with independent blocks of 64 KiB and only the header's checksum. Kafka reads no linked
              blocks and one frame only; what is not for storage may have them
    4 zstd    one or more zstd frames

What is to be stored is decompressed `as_kafka`: it must be readable by Kafka's own decoders, whose consumers would
otherwise stop at the batch for good. kafka_frames.py has the differences.

Decompression never allocates by a size that the input claims: output goes into a buffer of this thread that grows with
the actual output up to the caller's limit, so that a decompression bomb costs no more than the limit. The buffer is
kept up to 1 MiB, so that usual batches need no allocation. Memory from `borrow_decompressed` is valid only until that
thread decompresses again. Source: Kafka's org.apache.kafka.common.compress, xerial's
SnappyInputStream, the LZ4 frame format 1.6.

The functions import cramjam, which takes 1 ms, at their first use: a broker starts without it.
"""

from __future__ import annotations

import mmap
import threading
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Final, assert_never

from barnabas.protocol.errors import DecompressionError, DecompressionLimitError

Buffer = bytes | bytearray | memoryview


class Codec(IntEnum):
    """The compression of a batch's records: bits 0 to 2 of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @property
    def config_name(self) -> str:
        """The name in `compression.type`."""
        return self.name.lower()


CODECS: Final = tuple(Codec)


GZIP_LEVELS: Final = range(1, 10)
LZ4_LEVELS: Final = range(1, 18)
ZSTD_LEVELS: Final = range(-131072, 23)

_GZIP_DEFAULT_LEVEL: Final = 6
_ZSTD_DEFAULT_LEVEL: Final = 3
_LZ4_FAST_LEVEL: Final = 9  # Kafka's default level 9 means the fast compressor, every other level the slow one

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_SIZE: Final = 32 * 1024
_SNAPPY_MAX_RATIO: Final = 22
"""A snappy element of 3 bytes yields at most 64: a block cannot hold more."""

_SNAPPY_LENGTH_MAX: Final = 5
"""Bytes of a block's uncompressed length for Kafka. cramjam takes ten."""

_GZIP_MEMBER: Final = b"\x1f\x8b\x08"
_GZIP_MEMBER_BYTES_MIN: Final = 20

_PIECES: Final = 100
_BYTES_PER_PIECE: Final = 1024
"""So many gzip members, or snappy blocks and headers, and one more for each so many bytes of the limit. Each costs
microseconds, whatever it holds; clients write one member, and blocks of 32 KiB."""

_LZ4_FRAME_HEADER: Final = bytes.fromhex("04224d18 60 40 82")
"""Magic, version 1 with independent blocks, blocks of 64 KiB, checksum of these two bytes: what Java writes."""
_LZ4_BLOCK_SIZE: Final = 64 * 1024
_LZ4_STORED: Final = 0x8000_0000
_LZ4_END_MARK: Final = bytes(4)

_SCRATCH_START_BYTES: Final = 256 * 1024
_SCRATCH_KEPT_BYTES: Final = 1024 * 1024
_GROWTH: Final = 4

_BUFFER_FULL: Final = "failed to write whole buffer"
"""cramjam's error text for an output buffer that is too small."""


class _Scratch(threading.local):
    """One thread's output buffer."""

    def __init__(self) -> None:
        self.buffer = bytearray()


_scratch = _Scratch()


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """Compress `data`; `level` None is Kafka's default (gzip 6, lz4 9, zstd 3). Raises ValueError for a bad level."""
    if codec == Codec.NONE:
        return bytes(data)
    import cramjam

    match codec:
        case Codec.GZIP:
            level = _checked_level(codec, _GZIP_DEFAULT_LEVEL if level in (None, -1) else level, GZIP_LEVELS)
            return bytes(cramjam.gzip.compress(data, level=level))
        case Codec.SNAPPY:
            return _compress_snappy(memoryview(data))
        case Codec.LZ4:
            return _compress_lz4(
                memoryview(data), _checked_level(codec, _LZ4_FAST_LEVEL if level is None else level, LZ4_LEVELS)
            )
        case Codec.ZSTD:
            level = _checked_level(codec, _ZSTD_DEFAULT_LEVEL if level is None else level, ZSTD_LEVELS)
            return bytes(cramjam.zstd.compress(data, level=level))
    assert_never(codec)


def borrow_decompressed(codec: Codec, data: Buffer, max_bytes: int, *, as_kafka: bool = False) -> memoryview:
    """Decompress `data` to at most `max_bytes`, borrowed: valid only until this thread decompresses again.

    `as_kafka` refuses lz4 and snappy that Kafka's decoders do not read. Raises DecompressionError for invalid data or
    larger output.
    """
    if codec == Codec.NONE:
        if len(data) > max_bytes:
            raise DecompressionLimitError.of(codec.config_name, max_bytes)
        return memoryview(data)
    import cramjam

    match codec:
        case Codec.GZIP:
            return _decompress_gzip(memoryview(data), max_bytes)
        case Codec.SNAPPY:
            return _decompress_snappy(memoryview(data), max_bytes, as_kafka=as_kafka)
        case Codec.LZ4:
            return _decompress_lz4(memoryview(data), max_bytes, as_kafka=as_kafka)
        case Codec.ZSTD:
            return _decompress_growing(codec, cramjam.zstd.decompress_into, data, max_bytes)
    assert_never(codec)


def _decompress_gzip(data: memoryview, max_bytes: int) -> memoryview:
    import cramjam

    # What looks like a member is counted, because they end where they are inflated to. Records may look so, too; such a
    # batch is refused only beyond the usual limit, at which that takes 400 KB of them.
    if len(data) > _pieces_max(max_bytes) * _GZIP_MEMBER_BYTES_MIN:
        if bytes(data).count(_GZIP_MEMBER) > _pieces_max(max_bytes):
            raise _too_many_pieces(Codec.GZIP, "members", max_bytes)
    try:
        return _decompress_growing(Codec.GZIP, cramjam.gzip.decompress_into, data, max_bytes)
    except DecompressionLimitError:
        raise
    except DecompressionError:
        from barnabas.protocol.kafka_frames import inflate_members

        return memoryview(inflate_members(data, max_bytes))


def _decompress_lz4(data: memoryview, max_bytes: int, *, as_kafka: bool) -> memoryview:
    import cramjam

    from barnabas.protocol.kafka_frames import lz4_frame, lz4_frame_without_content_checks

    frame: Buffer = lz4_frame(data) if as_kafka else data
    try:
        return _decompress_growing(Codec.LZ4, cramjam.lz4.decompress_into, frame, max_bytes)
    except DecompressionLimitError:
        raise
    except DecompressionError as error:
        try:
            frame = lz4_frame_without_content_checks(data)
        except DecompressionError:
            raise error from None  # what Kafka does not read is no fault of a frame that we would
    return _decompress_growing(Codec.LZ4, cramjam.lz4.decompress_into, frame, max_bytes)


def _decompress_growing(
    codec: Codec, decompress_into: Callable[[Buffer, memoryview], int], data: Buffer, max_bytes: int
) -> memoryview:
    """Decompress into this thread's buffer, enlarging it fourfold each time it is too small."""
    import cramjam

    capacity = len(_scratch.buffer) or _SCRATCH_START_BYTES
    while True:
        output = _room_for(min(capacity, max_bytes))
        try:
            return output[: decompress_into(data, output)]
        except cramjam.DecompressionError as error:
            del output  # before a larger one is allocated, and not to live as long as a traceback
            if _BUFFER_FULL not in str(error):
                raise DecompressionError(f"records are not {codec.config_name}: {error}") from error
            if capacity >= max_bytes:
                raise DecompressionLimitError.of(codec.config_name, max_bytes) from error
            capacity *= _GROWTH


def _room_for(size_bytes: int) -> memoryview:
    """Return `size_bytes` of the thread's buffer if they fit, otherwise of a new one, which is kept if small.

    A large one is a mapping, whose pages the decompressor touches first: it runs without the interpreter lock, unlike a
    bytearray's constructor, which fills it with zeros.
    """
    if size_bytes <= len(_scratch.buffer):
        return memoryview(_scratch.buffer)[:size_bytes]
    if size_bytes > _SCRATCH_KEPT_BYTES:
        return memoryview(mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    _scratch.buffer = bytearray(size_bytes)
    return memoryview(_scratch.buffer)


def _compress_snappy(data: memoryview) -> bytes:
    import cramjam

    parts: list[Buffer] = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_SIZE]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def _decompress_snappy(data: memoryview, max_bytes: int, *, as_kafka: bool) -> memoryview:
    """Decompress all blocks; their claimed sizes are checked before anything is allocated."""
    import cramjam

    blocks: list[tuple[memoryview, int]] = []
    total = 0
    is_xerial = _is_xerial_header(data, 0)
    for block in _xerial_blocks(data, max_bytes, as_kafka=as_kafka) if is_xerial else (data,):
        if as_kafka and len(block) >= _SNAPPY_LENGTH_MAX and min(block[:_SNAPPY_LENGTH_MAX]) >= 0x80:
            raise DecompressionError("the length of a snappy block has more than 5 bytes")
        try:
            size = cramjam.snappy.decompress_raw_len(block)
        except cramjam.DecompressionError as error:
            raise DecompressionError(f"records are not snappy: {error}") from error
        if size > len(block) * _SNAPPY_MAX_RATIO:
            raise DecompressionError(f"a snappy block of {len(block)} bytes claims to hold {size}")
        blocks.append((block, size))
        total += size
        if total > max_bytes:
            raise DecompressionLimitError.of(Codec.SNAPPY.config_name, max_bytes)
    output = _room_for(total)
    end = 0
    for block, size in blocks:
        start, end = end, end + size
        try:
            written = cramjam.snappy.decompress_raw_into(block, output[start:end])
        except cramjam.DecompressionError as error:
            raise DecompressionError(f"records are not snappy: {error}") from error
        if written != size:
            raise DecompressionError(f"a snappy block holds {written} bytes, not the {size} that it claims")
    return output


def _xerial_blocks(data: memoryview, max_bytes: int, *, as_kafka: bool) -> Iterator[memoryview]:
    """Yield the raw snappy blocks; a header instead of a size starts another stream.

    As in xerial's reader, fewer than four bytes are the end. There, only the first header may have a version below 1.
    """
    position, end = len(_XERIAL_HEADER), len(data)
    for _ in range(_pieces_max(max_bytes)):
        if position + 4 > end:
            return
        if _is_xerial_header(data, position):
            version = int.from_bytes(data[position + 8 : position + 12], "big", signed=True)
            position += len(_XERIAL_HEADER)
            if position > end or (as_kafka and version < 1):
                raise DecompressionError(f"the header of a snappy stream has version {version}, or is cut short")
            continue
        start = position + 4
        size = int.from_bytes(data[position:start], "big", signed=True)
        position = start + size
        if size <= 0 or position > end:
            raise DecompressionError(f"a snappy block of {size} bytes does not fit the {end - start} that are left")
        yield data[start:position]
    raise _too_many_pieces(Codec.SNAPPY, "blocks", max_bytes)


def _is_xerial_header(data: memoryview, position: int) -> bool:
    return bytes(data[position : position + len(_XERIAL_MAGIC)]) == _XERIAL_MAGIC


def _compress_lz4(data: memoryview, level: int) -> bytes:
    """Compress to a frame as Java writes it. Java refuses linked blocks, cramjam's default."""
    import cramjam

    if level != _LZ4_FAST_LEVEL:
        frame = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
        frame.compress(bytes(data))
        return bytes(frame.finish())  # with a checksum per block, which Java reads as well
    parts: list[Buffer] = [_LZ4_FRAME_HEADER]
    for start in range(0, len(data), _LZ4_BLOCK_SIZE):
        block: Buffer = data[start : start + _LZ4_BLOCK_SIZE]
        packed = bytes(cramjam.lz4.compress_block(block, store_size=False))
        if len(packed) < len(block):
            parts += (len(packed).to_bytes(4, "little"), packed)
        else:
            parts += ((len(block) | _LZ4_STORED).to_bytes(4, "little"), block)
    parts.append(_LZ4_END_MARK)
    return b"".join(parts)


def _pieces_max(max_bytes: int) -> int:
    return _PIECES + max_bytes // _BYTES_PER_PIECE


def _too_many_pieces(codec: Codec, what: str, max_bytes: int) -> DecompressionLimitError:
    return DecompressionLimitError(
        f"{codec.config_name} records are in more than {_pieces_max(max_bytes)} {what}, too many for {max_bytes} bytes"
    )


def _checked_level(codec: Codec, level: int, levels: range) -> int:
    if level not in levels:
        raise ValueError(f"{codec.config_name} level {level} is not in {levels.start}..{levels.stop - 1}")
    return level
