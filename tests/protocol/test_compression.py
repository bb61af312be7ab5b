"""The codecs: round trips, the framings that Java reads and writes, and limits that hold against bombs."""

from __future__ import annotations

import os
import threading
import zlib
from pathlib import Path

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.compression import (
    CODECS,
    Codec,
    borrow_decompressed,
    compress,
)
from barnabas.protocol.errors import DecompressionError, DecompressionLimitError

MIB = 1 << 20
COMPRESSING = CODECS[1:]
SAMPLES = {
    "empty": b"",
    "one byte": b"x",
    "text": b"the same words again and " * 4000,
    "noise": os.urandom(100_000),
    "one block exactly": b"ab" * 32768,
}


def decompress(codec: Codec, data: bytes | bytearray | memoryview, max_bytes: int) -> bytes:
    return bytes(borrow_decompressed(codec, data, max_bytes))


@pytest.mark.parametrize("data", SAMPLES.values(), ids=SAMPLES.keys())
@pytest.mark.parametrize("codec", CODECS)
def test_compressed_data_comes_back(codec: Codec, data: bytes) -> None:
    assert decompress(codec, compress(codec, data), len(data)) == data
    assert decompress(codec, memoryview(bytearray(compress(codec, memoryview(data)))), len(data)) == data


@given(st.sampled_from(CODECS), st.binary(max_size=2000))
def test_any_bytes_come_back(codec: Codec, data: bytes) -> None:
    assert decompress(codec, compress(codec, data), len(data)) == data


@pytest.mark.parametrize(
    ("codec", "level"), [(Codec.GZIP, 1), (Codec.GZIP, 9), (Codec.GZIP, -1), (Codec.LZ4, 1), (Codec.LZ4, 17)]
)
def test_levels_are_taken(codec: Codec, level: int) -> None:
    data = SAMPLES["text"]
    assert decompress(codec, compress(codec, data, level), len(data)) == data


def test_a_higher_zstd_level_compresses_more() -> None:
    data = b"".join(b'{"id":%d,"name":"n%d"}' % (i * 7919 % 10007, i) for i in range(20_000))
    fast, slow = compress(Codec.ZSTD, data, 1), compress(Codec.ZSTD, data, 19)
    assert len(slow) < len(fast)
    assert decompress(Codec.ZSTD, slow, len(data)) == decompress(Codec.ZSTD, fast, len(data)) == data


@pytest.mark.parametrize(
    ("codec", "level"), [(Codec.GZIP, 10), (Codec.LZ4, 18), (Codec.ZSTD, 23), (Codec.GZIP, 0), (Codec.LZ4, 0)]
)
def test_a_level_that_kafka_refuses_is_refused(codec: Codec, level: int) -> None:
    with pytest.raises(ValueError, match=f"level {level} is not in"):
        compress(codec, b"data", level)


def test_snappy_is_written_in_the_xerial_framing_of_java() -> None:
    packed = compress(Codec.SNAPPY, b"a" * 40_000)
    assert packed[:16] == bytes.fromhex("82534e41505059000000000100000001")
    first = int.from_bytes(packed[16:20], "big")
    assert len(cramjam.snappy.decompress_raw(packed[20 : 20 + first])) == 32 * 1024
    rest = packed[20 + first :]
    assert len(cramjam.snappy.decompress_raw(rest[4:])) == 40_000 - 32 * 1024


def test_snappy_is_read_as_one_raw_block_and_as_several_xerial_streams() -> None:
    data = b"some data, some data, some data"
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(data)), 100) == data
    assert decompress(Codec.SNAPPY, compress(Codec.SNAPPY, data) * 3, 100) == data * 3


def test_lz4_is_written_as_java_writes_it() -> None:
    noise = SAMPLES["noise"]
    packed = compress(Codec.LZ4, noise)
    assert packed[:7] == bytes.fromhex("04224d18604082")  # independent blocks of 64 KiB, no checksums
    assert packed[7:11] == (65536 | 0x8000_0000).to_bytes(4, "little")  # noise is stored as it is
    assert packed[11 : 11 + 65536] == noise[:65536]
    assert packed[-4:] == bytes(4)


def test_gzip_and_zstd_are_read_as_several_members() -> None:
    for codec in (Codec.GZIP, Codec.ZSTD):
        assert decompress(codec, compress(codec, b"one") + compress(codec, b"two"), 10) == b"onetwo"


@pytest.mark.parametrize("codec", COMPRESSING)
def test_one_byte_above_the_limit_is_refused(codec: Codec) -> None:
    data = SAMPLES["text"]
    packed = compress(codec, data)
    assert len(decompress(codec, packed, len(data))) == len(data)
    with pytest.raises(DecompressionError, match=f"hold more than {len(data) - 1} bytes"):
        decompress(codec, packed, len(data) - 1)
    with pytest.raises(DecompressionError):
        decompress(Codec.NONE, data, len(data) - 1)


@pytest.mark.parametrize("codec", COMPRESSING)
def test_a_limit_below_the_kept_buffer_holds_as_well(codec: Codec) -> None:
    decompress(codec, compress(codec, bytes(MIB)), MIB)  # leaves a large buffer behind
    with pytest.raises(DecompressionError, match="hold more than 10 bytes"):
        decompress(codec, compress(codec, b"x" * 11), 10)


@pytest.mark.parametrize("codec", COMPRESSING)
@pytest.mark.parametrize("garbage", [b"", b"\x07", b"garbage, garbage, garbage", b"\xff" * 100], ids=repr)
def test_garbage_is_refused(codec: Codec, garbage: bytes) -> None:
    with pytest.raises(DecompressionError):
        decompress(codec, garbage, MIB)


@given(st.sampled_from(COMPRESSING), st.data())
def test_damaged_bytes_raise_a_decompression_error_or_give_bounded_output(codec: Codec, draw: st.DataObject) -> None:
    packed = bytearray(compress(codec, b"the same words again and " * 40))
    for _ in range(draw.draw(st.integers(1, 4))):
        packed[draw.draw(st.integers(0, len(packed) - 1))] = draw.draw(st.integers(0, 255))
    packed = packed[: draw.draw(st.integers(0, len(packed)))]
    try:
        assert len(decompress(codec, packed, 5000)) <= 5000
    except DecompressionError:
        pass


@pytest.mark.parametrize(
    "blocks",
    [
        "00000000",  # size 0
        "80000000",  # negative
        "7fffffff",  # far beyond the end
        "00000003" + "ffff07",  # a block that claims 2 GiB
        "00000001" + "00" + "82534e41505059",  # garbage where a size should be
        "00000001" + "00" + "82534e4150505900" + "0000",  # the second header cut short
    ],
)
def test_a_xerial_stream_with_wrong_sizes_is_refused(blocks: str) -> None:
    with pytest.raises(DecompressionError):
        decompress(Codec.SNAPPY, bytes.fromhex("82534e41505059000000000100000001" + blocks), MIB)


@pytest.mark.parametrize("piece", ["00000001" + "00", "82534e41505059000000000100000001"], ids=["block", "header"])
def test_a_xerial_stream_of_very_many_pieces_counts_as_too_large(piece: str) -> None:
    stream = bytes.fromhex("82534e41505059000000000100000001") + bytes.fromhex(piece) * 3000
    with pytest.raises(DecompressionLimitError, match="snappy records are in more than 2148 blocks"):
        decompress(Codec.SNAPPY, stream, 2 * MIB)
    assert decompress(Codec.SNAPPY, stream, 3 * MIB) == b""


def test_a_gzip_stream_of_very_many_members_counts_as_too_large() -> None:
    members = compress(Codec.GZIP, b"") * 3000
    with pytest.raises(DecompressionLimitError, match="gzip records are in more than 2148 members"):
        decompress(Codec.GZIP, members, 2 * MIB)
    assert decompress(Codec.GZIP, members, 3 * MIB) == b""


def test_a_snappy_block_with_an_impossible_size_allocates_nothing() -> None:
    claims_a_mib = bytes.fromhex("808040") + b"\x00x"
    with pytest.raises(DecompressionError, match="a snappy block of 5 bytes claims to hold 1048576"):
        decompress(Codec.SNAPPY, claims_a_mib, 2 * MIB)


def bombs() -> dict[Codec, bytes]:
    """Small inputs that hold far more than 256 MiB."""
    deflater = zlib.compressobj(9, wbits=31)
    gzip = b"".join(deflater.compress(bytes(MIB)) for _ in range(300)) + deflater.flush()
    zeros = bytes(cramjam.lz4.compress_block(bytes(65536), store_size=False))
    lz4 = bytes.fromhex("04224d18604082") + (len(zeros).to_bytes(4, "little") + zeros) * 5000 + bytes(4)
    rle = (128 * 1024 << 3 | 2).to_bytes(3, "little") + b"x"  # zstd: "this byte, 128 KiB of it"
    zstd = bytes.fromhex("28b52ffd0050") + rle * 3000
    block = bytes(cramjam.snappy.compress_raw(bytes(MIB)))
    snappy = bytes.fromhex("82534e41505059000000000100000001") + (len(block).to_bytes(4, "big") + block) * 300
    return {Codec.GZIP: gzip, Codec.LZ4: lz4, Codec.ZSTD: zstd, Codec.SNAPPY: snappy}


def test_a_bomb_costs_the_limit_and_no_more() -> None:
    loaded = bombs()
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    before = peak_rss_kib()
    for codec, bomb in loaded.items():
        with pytest.raises(DecompressionError, match="hold more than"):
            decompress(codec, bomb, 16 * MIB)
    assert peak_rss_kib() - before < 64 * 1024


def peak_rss_kib() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def test_threads_do_not_share_what_they_borrow() -> None:
    packed = compress(Codec.ZSTD, b"mine" * 1000)
    borrowed = borrow_decompressed(Codec.ZSTD, packed, MIB)
    other = threading.Thread(target=lambda: decompress(Codec.ZSTD, compress(Codec.ZSTD, b"other" * 1000), MIB))
    other.start()
    other.join()
    assert bytes(borrowed) == b"mine" * 1000


def test_a_codec_is_named_as_in_the_configuration() -> None:
    assert [codec.config_name for codec in CODECS] == ["none", "gzip", "snappy", "lz4", "zstd"]
