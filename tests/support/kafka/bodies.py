"""Compressed bodies of record batches, unusual ones above all, and what Kafka's decoders make of each.

tests/interop/compatibility/test_decoders_java.py asks Apache Kafka, the other users compare Barnabas with this table.
"""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Iterator
from enum import Enum
from functools import cache
from typing import NamedTuple

import cramjam
from xxhash import xxh32_intdigest

from barnabas.protocol.compression import Codec, compress
from barnabas.protocol.records import Record
from barnabas.protocol.records.layout import HEADER_SIZE
from tests.support.storage.records import TIMESTAMP, build, reseal


class Verdict(Enum):
    """What becomes of a batch with the body."""

    READ = "Kafka takes and reads it, and so do we"
    REFUSED = "Kafka refuses it, or takes it and its consumer dies, and we refuse it"
    STRICTER = "Kafka takes and reads it, we refuse it: no client writes it, and other decoders read something else"


class Body(NamedTuple):
    """The records of a batch, compressed."""

    name: str
    codec: Codec
    data: bytes
    records: int
    verdict: Verdict

    def batch(self) -> bytearray:
        """Return a batch with this body."""
        batch = build(listed(self.records))[:HEADER_SIZE]
        batch[22] = self.codec
        return reseal(batch + self.data)


@cache
def listed(count: int) -> list[Record]:
    """Return the records in a body of `count` records: words and noise in turn."""
    noise = random.Random(count)
    return [
        Record(i, TIMESTAMP + i, b"k%d" % i, b"words %d and " % i * 18 if i % 2 else noise.randbytes(200))
        for i in range(count)
    ]


@cache
def payload(count: int) -> bytes:
    """Return those records, not compressed."""
    return bytes(build(listed(count))[HEADER_SIZE:])


def lz4_block(data: bytes, *, stored: bool = False, checksum: bool = False) -> bytes:
    """Return a block with its size before it."""
    packed = data if stored else bytes(cramjam.lz4.compress_block(data, store_size=False))
    return lz4_raw_block(packed, stored=stored, checksum=checksum)


def lz4_raw_block(packed: bytes, *, stored: bool = False, checksum: bool = False) -> bytes:
    """Return a block of these bytes with their size before them."""
    block = struct.pack("<I", len(packed) | (1 << 31 if stored else 0)) + packed
    return block + struct.pack("<I", xxh32_intdigest(packed)) if checksum else block


def lz4_frame(blocks: bytes, flags: int = 0x60, bd: int = 0x40, *, extra: bytes = b"", end: bytes = bytes(4)) -> bytes:
    """Return a frame with the right header checksum; `extra` is its content size or dictionary id."""
    descriptor = bytes((flags, bd)) + extra
    checksum = bytes((xxh32_intdigest(descriptor) >> 8 & 0xFF,))
    return bytes.fromhex("04224d18") + descriptor + checksum + blocks + end


def lz4_of(data: bytes, flags: int = 0x60, bd: int = 0x40, *, size: int = 65536, stored: bool = False) -> bytes:
    """Return a frame of `data` in blocks of `size` bytes."""
    parts = (data[at : at + size] for at in range(0, len(data), size))
    return lz4_frame(b"".join(lz4_block(part, stored=stored, checksum=bool(flags & 0x10)) for part in parts), flags, bd)


def gzip_member(data: bytes, flags: int = 0, extra: bytes = b"", method: int = 8) -> bytes:
    """Return a member; `extra` is what the flags announce."""
    deflater = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    deflated = deflater.compress(data) + deflater.flush()
    header = bytes((0x1F, 0x8B, method, flags, 0, 0, 0, 0, 0, 255))
    return header + extra + deflated + struct.pack("<II", zlib.crc32(data), len(data))


def _changed(data: bytes, at: int) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 1
    return bytes(changed)


def _lz4_bodies() -> Iterator[tuple[str, bytes, int, Verdict]]:
    read, refused, stricter = Verdict.READ, Verdict.REFUSED, Verdict.STRICTER
    data, large = payload(3), payload(2000)
    half = len(data) // 2
    frame, first, second = lz4_of(data), lz4_block(data[:half]), lz4_block(data[half:])
    whole = lz4_block(data)
    checksum = struct.pack("<I", xxh32_intdigest(data))
    skippable = bytes.fromhex("502a4d18 03000000 616263")
    default = cramjam.lz4.Compressor()
    default.compress(data)
    for level in (None, 1, 17):
        yield f"ours, level {level}", compress(Codec.LZ4, large, level), 2000, read
    for bd in (0x40, 0x50, 0x60, 0x70):
        yield f"block size {bd:#x}", lz4_of(data, bd=bd), 3, read
    yield "block checksums", lz4_of(large, 0x70), 2000, read
    yield "stored blocks", lz4_of(large, stored=True), 2000, read
    yield "small blocks", lz4_of(large, size=100), 2000, read
    yield "blocks of one byte", lz4_of(data, size=1), 3, read
    yield "content checksum", lz4_frame(whole, 0x64, end=bytes(4) + checksum), 3, read
    yield "wrong content checksum", lz4_frame(whole, 0x64, end=bytes(8)), 3, read
    yield "content size", lz4_frame(whole, 0x68, extra=struct.pack("<Q", len(data))), 3, read
    yield "wrong content size", lz4_frame(whole, 0x68, extra=struct.pack("<Q", len(data) + 1)), 3, read
    yield "content size of 1", lz4_frame(whole, 0x68, extra=struct.pack("<Q", 1)), 3, read
    yield "wrong content size and checksum", lz4_frame(whole, 0x6C, extra=bytes(8), end=bytes(8)), 3, read
    yield "bytes after the end mark", frame + b"x", 3, read
    yield "zeros after the end mark", frame + bytes(9), 3, read
    yield "empty block before the end mark", lz4_frame(whole + lz4_raw_block(b"\x00")), 3, read

    yield "linked blocks", bytes(cramjam.lz4.compress(large)), 2000, refused
    yield "cramjam's default", bytes(default.finish()), 3, refused
    yield "flag of linked blocks", lz4_of(data, 0x40), 3, refused
    yield "dictionary id", lz4_frame(whole, 0x61, extra=bytes(4)), 3, refused
    yield "reserved flag", lz4_of(data, 0x62), 3, refused
    for bd in (0x00, 0x30, 0x41, 0xC0):
        yield f"block descriptor {bd:#x}", lz4_of(data, bd=bd), 3, refused
    for version in (0x20, 0xA0, 0xE0):
        yield f"version and flags {version:#x}", lz4_of(data, version), 3, refused
    yield "two frames", lz4_frame(first) + lz4_frame(second), 3, refused
    yield "an empty frame first", lz4_frame(b"") + frame, 3, refused
    yield "a skippable frame first", skippable + frame, 3, refused
    yield "legacy frame", bytes.fromhex("02214c18") + whole, 3, refused
    yield "empty block first", lz4_frame(lz4_raw_block(b"\x00") + whole), 3, refused
    yield "empty block in the middle", lz4_frame(first + lz4_raw_block(b"\x0f") + second), 3, refused
    yield "empty stored block in the middle", lz4_frame(first + lz4_raw_block(b"", stored=True) + second), 3, refused
    yield "wrong header checksum", _changed(frame, 6), 3, refused
    yield (
        "wrong header checksum and content size",
        _changed(lz4_frame(whole, 0x68, extra=bytes(8)), 14),
        3,
        refused,
    )
    yield "wrong block checksum", _changed(lz4_of(data, 0x70), -5), 3, refused
    yield "a block above the block size", lz4_of(large, size=70_000, stored=True), 2000, refused
    yield "damaged block after the records", lz4_frame(whole + lz4_raw_block(b"\xff" * 9)), 3, refused
    yield "no end mark", frame[:-4], 3, refused
    yield "cut end mark", frame[:-1], 3, refused
    yield "cut content checksum", lz4_frame(whole, 0x64, end=bytes(7)), 3, refused
    yield "cut block", frame[:-20], 3, refused
    for size in (0, 4, 6, 7):
        yield f"the first {size} bytes", frame[:size], 3, refused
    yield "a raw block", whole[4:], 3, refused

    yield "another frame after the records", frame + frame, 3, stricter
    yield "a skippable frame after the records", frame + skippable, 3, stricter
    yield "blocks after an empty one", lz4_frame(whole + lz4_raw_block(b"\x00") + whole), 3, stricter
    yield "empty block instead of the end mark", lz4_frame(whole, end=lz4_raw_block(b"\x00")), 3, stricter
    yield "end mark with bit 31", lz4_frame(whole, end=bytes.fromhex("00000080")), 3, stricter


def _gzip_bodies() -> Iterator[tuple[str, bytes, int, Verdict]]:
    read, refused = Verdict.READ, Verdict.REFUSED
    data, large = payload(3), payload(2000)
    half = len(data) // 2
    member, first, second = gzip_member(data), gzip_member(data[:half]), gzip_member(data[half:])
    for level in (None, 1, 9):
        yield f"ours, level {level}", compress(Codec.GZIP, large, level), 2000, read
    yield "two members", first + second, 3, read
    yield "an empty member first", gzip_member(b"") + member, 3, read
    yield "an empty member last", member + gzip_member(b""), 3, read
    for size in (1, 18, 19, 30):
        yield f"{size} bytes after the member", member + b"x" * size, 3, read
    yield "zeros after the member", member + bytes(512), 3, read
    yield "garbage after two members", first + second + b"garbage" * 9, 3, read
    yield "garbage after a large member", gzip_member(large) + b"garbage" * 9, 2000, read
    yield "the start of a member after one", member + member[:10], 3, read
    yield "another method after the member", member + gzip_member(b"x" * 50, method=7), 3, read
    for flags in (0x20, 0x40, 0x80, 0xE0):
        yield f"reserved flags {flags:#x}", gzip_member(data, flags), 3, read
    yield "reserved flags in the second member", first + gzip_member(data[half:], 0xE0), 3, read
    yield "text flag", gzip_member(data, 0x01), 3, read
    every = struct.pack("<H", 3) + b"abc" + b"name\0" + b"comment\0"
    yield "extra field, name and comment", gzip_member(data, 0x1C, every), 3, read
    yield "extra field, name, comment and reserved flags", gzip_member(data, 0xFC, every), 3, read
    header = bytes((0x1F, 0x8B, 8, 2, 0, 0, 0, 0, 0, 255))
    yield "header checksum", gzip_member(data, 0x02, struct.pack("<H", zlib.crc32(header) & 0xFFFF)), 3, read

    yield "wrong header checksum", gzip_member(data, 0x02, b"\x01\x02"), 3, refused
    yield "wrong header checksum and reserved flags", gzip_member(data, 0xE2, b"\x01\x02"), 3, refused
    yield "a cut member after one", member + member[:60], 3, refused
    yield "another method", gzip_member(data, method=7), 3, refused
    yield "zlib", zlib.compress(data), 3, refused
    yield "wrong checksum", _changed(member, -8), 3, refused
    yield "wrong size", _changed(member, -4), 3, refused
    yield "wrong checksum and garbage", _changed(member, -8) + b"garbage" * 9, 3, refused
    yield "cut trailer", member[:-1], 3, refused
    yield "cut", member[:-30], 3, refused
    yield "nothing", b"", 3, refused


def _snappy_bodies() -> Iterator[tuple[str, bytes, int, Verdict]]:
    read, refused = Verdict.READ, Verdict.REFUSED
    data, large = payload(3), payload(2000)
    half = len(data) // 2
    stream, first, second = (compress(Codec.SNAPPY, part) for part in (data, data[:half], data[half:]))
    header, raw = stream[:16], bytes(cramjam.snappy.compress_raw(data))

    def with_length(length: int, size: int) -> bytes:
        groups = bytes((length >> 7 * at & 0x7F) | (0x80 if at < size - 1 else 0) for at in range(size))
        return groups + raw[2:]

    yield "ours", compress(Codec.SNAPPY, large), 2000, read
    yield "one raw block", raw, 3, read
    yield "a large raw block", bytes(cramjam.snappy.compress_raw(large)), 2000, read
    yield "two streams", first + second, 3, read
    yield "a header last", stream + header, 3, read
    for cut in (b"\x00", b"\xff\xff", b"\x00\x00\x00", header[:3]):
        yield f"a size cut to {cut!r}", stream + cut, 3, read
    for version in (-1, 0, 1, 2):
        other = header[:8] + struct.pack(">ii", version, 1)
        yield f"version {version}", other + stream[16:], 3, read
        verdict = read if version > 0 else refused
        yield f"version {version} of the second stream", first + other + second[16:], 3, verdict
    yield "a length of 5 bytes", with_length(len(data), 5), 3, read
    yield "a length of 6 bytes", with_length(len(data), 6), 3, refused
    yield "a length of 10 bytes", with_length(len(data), 10), 3, refused
    yield "a length above 32 bits", with_length(len(data) + (1 << 32), 5), 3, refused
    yield "a wrong length", with_length(len(data) + 1, 2), 3, refused
    yield "bytes after the raw block", raw + b"\x00", 3, refused
    for size in (4, 8, 15):
        yield f"a header cut to {size} bytes", stream + header[:size], 3, refused
    yield "a size of 0", stream + bytes(4), 3, refused
    yield "a negative size", stream + b"\xff" * 4, 3, refused
    yield "a size beyond the end", stream + b"\x00\x00\xff\xff", 3, refused
    yield "a damaged block after the records", stream + b"\x00\x00\x00\x03\xff\xff\x07", 3, refused
    yield "only a header", header, 3, refused
    yield "nothing", b"", 3, refused
    yield "16 bytes that begin like a header", stream + b"\x82SNAxxxx" + bytes(8), 3, Verdict.STRICTER


def _zstd_bodies() -> Iterator[tuple[str, bytes, int, Verdict]]:
    read, refused, stricter = Verdict.READ, Verdict.REFUSED, Verdict.STRICTER
    data, large = payload(3), payload(2000)
    half = len(data) // 2
    frame, first, second = (compress(Codec.ZSTD, part) for part in (data, data[:half], data[half:]))
    skippable = bytes.fromhex("502a4d18 03000000 616263")

    def raw_frame(flags: int, fields: bytes, checksum: bytes = b"") -> bytes:
        block = (len(data) << 3 | 1).to_bytes(3, "little") + data
        return bytes.fromhex("28b52ffd") + bytes((flags,)) + fields + block + checksum

    for level in (None, -5, 1, 19):
        yield f"ours, level {level}", compress(Codec.ZSTD, large, level), 2000, read
    yield "two frames", first + second, 3, read
    yield "an empty frame first", compress(Codec.ZSTD, b"") + frame, 3, read
    yield "an empty frame last", frame + compress(Codec.ZSTD, b""), 3, read
    yield "a skippable frame first", skippable + frame, 3, read
    yield "a skippable frame last", frame + skippable, 3, read
    yield "a window of 128 MiB", raw_frame(0, b"\x88"), 3, read
    yield "a window of 144 MiB", raw_frame(0, b"\x89"), 3, refused
    yield "the content size", raw_frame(0x60, struct.pack("<H", len(data) - 256)), 3, read
    yield "a wrong content size", raw_frame(0x60, struct.pack("<H", len(data) - 255)), 3, refused
    yield "the dictionary id 0", raw_frame(0x01, b"\x50\x00"), 3, read
    yield "a dictionary id", raw_frame(0x01, b"\x50\x07"), 3, refused
    yield "the unused flag", raw_frame(0x10, b"\x50"), 3, read
    yield "the reserved flag", raw_frame(0x08, b"\x50"), 3, refused
    yield "a wrong checksum", raw_frame(0x04, b"\x50", bytes(4)), 3, refused
    yield "a cut checksum", raw_frame(0x04, b"\x50", bytes(3)), 3, refused
    yield "a cut frame", frame[:-1], 3, refused
    yield "the cut second frame of the records", first + second[:-3], 3, refused
    yield "another frame after the records", frame + frame, 3, refused
    for version in (0x24, 0x27):
        yield f"a frame of the old format {version:#x}", bytes((version,)) + frame[1:], 3, refused
    for size in (1, 4, 8):
        yield f"{size} bytes after the frame", frame + b"g" * size, 3, refused
    yield "nothing", b"", 3, refused
    yield "a cut frame after the records", frame + frame[:8], 3, stricter


@cache
def bodies() -> list[Body]:
    """Return the whole table."""
    tables = {
        Codec.GZIP: _gzip_bodies(),
        Codec.SNAPPY: _snappy_bodies(),
        Codec.LZ4: _lz4_bodies(),
        Codec.ZSTD: _zstd_bodies(),
    }
    return [Body(f"{codec.config_name}: {row[0]}", codec, *row[1:]) for codec, rows in tables.items() for row in rows]
