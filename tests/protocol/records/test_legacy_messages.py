"""Message formats 0 and 1: what Java wrote is read as Java reads it; hostile bytes raise CorruptRecordError only."""

from __future__ import annotations

import contextlib
import gzip
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.compression import Codec
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.records.batch import iter_batches
from barnabas.protocol.records.errors import CorruptRecordError
from barnabas.protocol.records.layout import MAGIC_V2, TimestampType
from barnabas.protocol.records.legacy.lz4 import with_right_header_checksum
from barnabas.protocol.records.legacy.messages import LegacyMessage, iter_legacy_messages, read_legacy_records
from barnabas.protocol.records.legacy.up_conversion import BATCH_BYTES, convert_to_v2
from barnabas.protocol.records.reader import check_records, read_records
from barnabas.protocol.records.record import Record
from tests.support.storage.legacy import message, message_sets
from tests.support.storage.records import plain

SETS = message_sets()
WRAPPERS = [name for name in SETS if "none" not in name]
UNLIMITED = 1 << 30


def read_all(data: bytes) -> list[Record]:
    records = []
    for each in iter_legacy_messages(data):
        each.ensure_valid()
        records += read_legacy_records(each)
    return records


def converted(data: bytes, max_bytes: int = UNLIMITED, *, at_least_one_batch: bool = True) -> list[Record]:
    batches = convert_to_v2(memoryview(data), max_bytes, at_least_one_batch=at_least_one_batch)
    return [record for batch in iter_batches(batches) for record in read_records(batch)]


@pytest.mark.parametrize("name", SETS)
def test_what_java_wrote_is_read_as_java_reads_it(name: str) -> None:
    written = SETS[name]
    assert tuple(read_all(written.data)) == written.records
    for each in iter_legacy_messages(written.data):
        is_append_time = each.timestamp_type is TimestampType.LOG_APPEND_TIME
        assert is_append_time == (written.timestamp_type == "LogAppendTime")


@pytest.mark.parametrize("name", SETS)
def test_as_version_2_everything_but_the_format_stays(name: str) -> None:
    written = SETS[name]
    batches = list(iter_batches(convert_to_v2(memoryview(written.data), UNLIMITED)))
    assert tuple(record for batch in batches for record in read_records(batch)) == written.records
    for batch in batches:
        batch.ensure_valid()
        check_records(batch, contiguous=False)
        assert (batch.timestamp_type is TimestampType.LOG_APPEND_TIME) == (written.timestamp_type == "LogAppendTime")
        assert batch.codec is Codec[name.split("-")[1].upper()]
        assert (batch.partition_leader_epoch, batch.producer_id, batch.base_sequence) == (-1, -1, -1)


def test_a_log_of_all_formats_is_converted_as_a_whole_and_keeps_its_new_batches_byte_for_byte() -> None:
    new = bytes(plain(4, base_offset=30))
    log = b"".join(written.data for written in SETS.values()) + new
    output = convert_to_v2(memoryview(log), UNLIMITED)
    assert [record.offset for record in converted(log)] == list(range(34))
    assert output.endswith(new)


def test_messages_without_a_codec_share_batches_of_bounded_size() -> None:
    log = b"".join(message(offset, bytes(100), timestamp=5) for offset in range(0, 2000, 2))  # gaps: it was compacted
    batches = list(iter_batches(convert_to_v2(memoryview(log), UNLIMITED)))
    assert [record.offset for batch in batches for record in read_records(batch)] == list(range(0, 2000, 2))
    assert 5 < len(batches) < 10
    assert all(batch.size_bytes <= BATCH_BYTES for batch in batches)


@pytest.mark.parametrize("name", ["v1-none", "v1-gzip"])
def test_an_entry_beyond_the_limit_is_left_for_the_next_read_unless_it_is_the_first(name: str) -> None:
    first = SETS[name].data
    log = first + message(100, bytes(1000))
    whole = convert_to_v2(memoryview(first), UNLIMITED)
    assert convert_to_v2(memoryview(log), len(whole)) == whole
    assert convert_to_v2(memoryview(log), 10, at_least_one_batch=False) == b""
    assert converted(log, 10)[0].offset == SETS[name].records[0].offset
    assert 100 not in [record.offset for record in converted(log, len(whole) + 500)]


def test_an_entry_cut_short_by_the_end_is_left_out() -> None:
    data = SETS["v1-none"].data
    assert [record.offset for record in converted(data[:-1])] == [12, 13]
    assert [record.offset for record in converted(data + plain(2, base_offset=15)[:-1])] == [12, 13, 14]


def test_damage_raises_only_after_the_good_entries_before_it_were_read() -> None:
    good, bad = SETS["v1-gzip"].data, bytearray(SETS["v1-lz4"].data)
    bad[-1] ^= 1
    assert [record.offset for record in converted(good + bytes(bad))] == [15, 16, 17]
    with pytest.raises(CorruptRecordError, match="stored crc"):
        converted(bytes(bad))


@pytest.mark.parametrize("name", SETS)
def test_a_flipped_bit_anywhere_after_the_length_is_detected(name: str) -> None:
    data = SETS[name].data
    for position in range(12, LegacyMessage(data).size_bytes):
        damaged = bytearray(data)
        damaged[position] ^= 0x10
        with pytest.raises(CorruptRecordError):
            read_all(bytes(damaged))


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_hostile_bytes_raise_corrupt_record_error_only(data: bytes) -> None:
    for hostile in (data, message(5, data, attributes=1), message(5, data, attributes=3, magic=0)):
        for consume in (read_all, converted):
            try:
                consume(hostile)
            except CorruptRecordError:
                continue


@settings(deadline=None, max_examples=500)
@given(st.sampled_from(sorted(SETS)), st.lists(st.tuples(st.integers(16, 200), st.integers(0, 255)), min_size=1))
def test_a_bad_message_with_a_right_crc_raises_corrupt_record_error_only(
    name: str, changes: list[tuple[int, int]]
) -> None:
    hostile = bytearray(SETS[name].data)
    for position, value in changes:
        hostile[position % len(hostile)] = value
    size = int.from_bytes(hostile[8:12], "big", signed=True) + 12
    if 16 < size <= len(hostile):
        hostile[12:16] = zlib.crc32(hostile[16:size]).to_bytes(4, "big")
    with contextlib.suppress(CorruptRecordError):
        read_all(bytes(hostile))
    # A message whose magic became 2 is a stored batch to the conversion, which leaves its contents to the client.
    passed_on = MAGIC_V2 in (value for _, value in changes)
    with contextlib.suppress(DecodeError if passed_on else CorruptRecordError):
        converted(bytes(hostile))


@pytest.mark.parametrize(
    "second",
    [message(4, b"y"), message(6, b"y", timestamp=-(2**63))],
    ids=["an offset that goes back", "a far timestamp"],
)
def test_a_message_that_cannot_follow_the_one_before_it_ends_a_conversion(second: bytes) -> None:
    first = message(5, b"x", timestamp=2**62)
    assert [record.offset for record in converted(first + second)] == [5]


def wrapper(content: bytes, *, offset: int = 9, magic: int = 1, attributes: int = 1) -> LegacyMessage:
    return LegacyMessage(message(offset, gzip.compress(content), attributes=attributes, magic=magic))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        message(0, b"x", attributes=1),
        message(1, b"x") + message(1, b"y"),
        message(2, b"x") + message(1, b"y"),
        message(10, b"x"),
    ],
    ids=["nothing", "wrapper in a wrapper", "same offset twice", "offsets go back", "last offset beyond the wrapper's"],
)
def test_a_wrapper_with_impossible_messages_is_corrupt(content: bytes) -> None:
    with pytest.raises(CorruptRecordError):
        read_legacy_records(wrapper(content, magic=0 if content[:8] == (10).to_bytes(8, "big") else 1))


def test_a_compacted_wrapper_keeps_its_offsets() -> None:
    inner = message(2, b"x") + message(5, b"y")
    assert [record.offset for record in read_legacy_records(wrapper(inner, offset=105))] == [102, 105]
    assert [record.offset for record in read_legacy_records(wrapper(inner, offset=5, magic=0))] == [2, 5]


def test_a_wrapper_without_a_value_or_with_zstd_is_corrupt() -> None:
    for bad in (message(1, None, attributes=1), message(1, b"x", attributes=4)):
        with pytest.raises(CorruptRecordError):
            read_legacy_records(LegacyMessage(bad))


def test_a_wrapper_that_grows_beyond_the_limit_is_refused() -> None:
    bomb = wrapper(message(9, bytes(1 << 20)))
    with pytest.raises(CorruptRecordError, match="more than 1000 bytes"):
        read_legacy_records(bomb, max_decompressed_bytes=1000)


def test_a_message_cut_short_within_a_wrapper_is_left_out_as_kafka_does() -> None:
    inner = message(0, b"x") + message(1, b"y")
    assert [record.offset for record in read_legacy_records(wrapper(inner[:-1]))] == [9]


def test_the_header_checksum_of_format_0_is_corrected_and_short_frames_are_copied() -> None:
    broken = bytes.fromhex("04224d18 60 40 1a 00000000")
    assert with_right_header_checksum(broken)[6] == 0x82
    assert with_right_header_checksum(b"\x04\x22") == b"\x04\x22"


def test_every_recorded_wrapper_is_a_test_case() -> None:
    assert len(WRAPPERS) == 7
