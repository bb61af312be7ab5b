"""The header view of a batch: its fields, its checks, and the patches that a leader makes in place."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.records import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    Codec,
    CorruptRecordError,
    InvalidRecordError,
    RecordBatch,
    TimestampType,
    UnsupportedMagicError,
    check_records,
    iter_batches,
    read_records,
)
from tests.support.storage.records import TIMESTAMP, plain, plain_records, reseal

# 61 bytes of header with a different value in each field, then one least record.
GOLDEN = bytes.fromhex(
    "0000000000000064"  # base offset 100
    "00000038"  # length 56
    "00000007"  # partition leader epoch
    "02"  # magic
    "fbaccf51"  # crc
    "0038"  # attributes: no codec, LogAppendTime, transactional, control
    "00000000"  # last offset delta
    "0000018bcfe56800"  # base timestamp
    "0000018bcfe56801"  # max timestamp
    "0000000000001234"  # producer id
    "0003"  # producer epoch
    "00000009"  # base sequence
    "00000001"  # record count
    "0c000000010100"
)


def test_every_field_is_read_from_its_place() -> None:
    batch = RecordBatch(GOLDEN)
    batch.ensure_valid()
    assert batch.base_offset == batch.last_offset == 100
    assert batch.next_offset == 101
    assert batch.size_bytes == len(GOLDEN) == 68
    assert batch.partition_leader_epoch == 7
    assert batch.magic == 2
    assert batch.crc == 0xFBACCF51
    assert batch.attributes == 0x38
    assert batch.codec is Codec.NONE
    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert batch.is_transactional
    assert batch.is_control
    assert not batch.has_delete_horizon
    assert batch.last_offset_delta == 0
    assert batch.base_timestamp == TIMESTAMP
    assert batch.max_timestamp == TIMESTAMP + 1
    assert batch.producer_id == 0x1234
    assert batch.producer_epoch == 3
    assert batch.base_sequence == batch.last_sequence == 9
    assert batch.record_count == 1
    assert batch.payload == GOLDEN[HEADER_SIZE:]
    assert batch.bytes == GOLDEN
    assert "offsets 100..100, 1 records, 68 bytes at position 0" in repr(batch)


def test_a_view_inside_of_a_buffer_shares_its_bytes() -> None:
    buffer = bytearray(b"before") + GOLDEN + b"after"
    batch = RecordBatch(memoryview(buffer), 6)
    batch.ensure_valid()
    assert batch.bytes == GOLDEN
    buffer[6 + HEADER_SIZE] = 0xEE
    assert batch.payload[0] == 0xEE


@pytest.mark.parametrize(("attributes", "codec"), list(enumerate(Codec)))
def test_the_codec_is_in_the_lowest_bits(attributes: int, codec: Codec) -> None:
    data = bytearray(GOLDEN)
    data[21:23] = struct.pack(">h", attributes | 0x40)
    batch = RecordBatch(data)
    assert batch.codec is codec
    assert batch.has_delete_horizon
    assert batch.timestamp_type is TimestampType.CREATE_TIME
    assert not batch.is_transactional
    assert not batch.is_control


@pytest.mark.parametrize("codec_id", [5, 6, 7])
def test_an_undefined_codec_is_refused(codec_id: int) -> None:
    data = bytearray(GOLDEN)
    data[22] = codec_id
    for use in (lambda batch: batch.codec, check_records, read_records):
        with pytest.raises(InvalidRecordError, match=f"codec {codec_id} is unknown"):
            use(RecordBatch(reseal(data)))


def test_a_sequence_wraps_to_zero() -> None:
    assert RecordBatch(plain(3, base_sequence=2**31 - 2, producer_id=1, producer_epoch=0)).last_sequence == 0
    assert RecordBatch(plain(3)).last_sequence == -1


def test_every_flipped_bit_after_the_crc_is_detected() -> None:
    for position in range(21, len(GOLDEN)):
        data = bytearray(GOLDEN)
        data[position] ^= 0x10
        with pytest.raises(CorruptRecordError, match="stored crc 0xfbaccf51, computed"):
            RecordBatch(data).ensure_valid()


def test_a_batch_cut_short_is_corrupt() -> None:
    for size in range(len(GOLDEN)):
        with pytest.raises(CorruptRecordError):
            RecordBatch(GOLDEN[:size]).ensure_valid()
    with pytest.raises(CorruptRecordError, match="claims 68 bytes, 67 are there"):
        RecordBatch(b"xx" + GOLDEN[:-1], 2).ensure_valid()


@pytest.mark.parametrize("length", [HEADER_SIZE - LOG_OVERHEAD - 1, 0, -1, -(2**31)])
def test_a_length_below_the_header_is_corrupt(length: int) -> None:
    data = GOLDEN[:8] + struct.pack(">i", length) + GOLDEN[12:]
    with pytest.raises(CorruptRecordError, match="less than its header"):
        RecordBatch(data)
    with pytest.raises(CorruptRecordError, match="less than its header"):
        next(iter_batches(data))


def test_a_batch_of_another_format_is_distinguished_from_a_corrupt_one() -> None:
    old = GOLDEN[:16] + b"\x01" + GOLDEN[17:]
    assert RecordBatch(old).magic == 1
    with pytest.raises(UnsupportedMagicError) as caught:
        RecordBatch(old).ensure_valid()
    assert caught.value.magic == 1
    assert caught.value.index == InvalidRecordError.BATCH
    with pytest.raises(UnsupportedMagicError):
        RecordBatch(old[:40])  # a message of version 0 or 1 may be that short
    with pytest.raises(UnsupportedMagicError):
        next(iter_batches(old))
    with pytest.raises(CorruptRecordError, match="magic 77"):
        next(iter_batches(GOLDEN[:16] + b"\x4d" + GOLDEN[17:]))


def test_offset_and_epoch_are_stamped_outside_of_the_crc() -> None:
    data = bytearray(b"xx") + GOLDEN
    batch = RecordBatch(data, 2)
    batch.stamp_offset_and_epoch(2**40, 12)
    assert data[2:18] == struct.pack(">qii", 2**40, 56, 12)
    assert data[18:] == GOLDEN[16:]
    assert (batch.base_offset, batch.partition_leader_epoch) == (2**40, 12)
    again = RecordBatch(data, 2)
    again.ensure_valid()
    assert (again.base_offset, again.partition_leader_epoch) == (2**40, 12)


def test_timestamps_are_stamped_with_a_new_crc() -> None:
    data = plain(5, Codec.GZIP)
    batch = RecordBatch(data)
    batch.stamp_timestamps(TimestampType.LOG_APPEND_TIME, 77)
    again = RecordBatch(data)
    again.ensure_valid()
    assert again.codec is Codec.GZIP
    assert again.timestamp_type is batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert again.max_timestamp == batch.max_timestamp == 77
    assert again.crc == batch.crc
    assert {record.timestamp for record in read_records(again)} == {77}
    again.stamp_timestamps(TimestampType.CREATE_TIME, TIMESTAMP + 4)
    assert data == plain(5, Codec.GZIP)


def test_stamping_unchanged_values_writes_nothing() -> None:
    batch = RecordBatch(bytes(plain(1)))  # read only: a write would fail
    batch.stamp_timestamps(TimestampType.CREATE_TIME, TIMESTAMP)
    with pytest.raises(TypeError):
        batch.stamp_timestamps(TimestampType.CREATE_TIME, TIMESTAMP + 1)


def test_iterating_yields_complete_batches_and_the_position_of_the_partial_one() -> None:
    first, second = plain(2), plain(3, base_offset=2)
    for tail in range(len(second)):
        batches = iter_batches(first + second + second[:tail])
        assert [(batch.position, batch.base_offset) for batch in batches] == [(0, 0), (len(first), 2)]
        assert batches.position == len(first) + len(second)
    assert [batch.base_offset for batch in iter_batches(first + second, len(first))] == [2]


def test_iterating_stops_at_garbage_with_the_position_of_it() -> None:
    first = plain(2)
    batches = iter_batches(first + bytes(64))
    next(batches)
    with pytest.raises(DecodeError):
        next(batches)
    assert batches.position == len(first)


@given(st.binary(max_size=200), st.integers(0, 210))
def test_no_bytes_raise_anything_but_a_decode_error(data: bytes, position: int) -> None:
    for patched in (data, data[:16] + b"\x02" + data[17:]):
        try:
            batch = RecordBatch(patched, position)
            batch.ensure_valid()
        except DecodeError:
            pass
        try:
            for batch in iter_batches(patched, position):
                assert batch.size_bytes >= HEADER_SIZE
                check_records(batch)
                read_records(batch)
        except DecodeError:
            pass


def test_records_come_back_from_each_batch() -> None:
    log = plain(4) + plain(3, base_offset=4)
    assert [record for batch in iter_batches(log) for record in read_records(batch)] == (
        plain_records(4) + [record._replace(timestamp=TIMESTAMP + i) for i, record in enumerate(plain_records(3, 4))]
    )
