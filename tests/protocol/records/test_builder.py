"""Building batches: golden bytes, sizes, limits, header fields; and rebuilding one with another codec."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.records import (
    HEADER_SIZE,
    Codec,
    DecompressionError,
    Record,
    RecordBatch,
    RecordBatchBuilder,
    TimestampType,
    check_records,
    read_records,
    rebuild_batch,
)
from tests.support.storage.records import TIMESTAMP, build, plain, plain_records, records

ONE_RECORD = bytes.fromhex(
    "0000000000000000 00000044 ffffffff 02 2f01f53a 0000 00000000 0000018bcfe56800 0000018bcfe56800"
    "ffffffffffffffff ffff ffffffff 00000001"
    "24 00 00 00 06 6b6579 0a 76616c7565 02 02 68 02 78".replace(" ", "")
)


def test_one_record_has_these_bytes(kernel: ModuleType) -> None:
    builder = RecordBatchBuilder(max_bytes=1000)
    builder.append(TIMESTAMP, b"key", b"value", [("h", b"x")])
    assert builder.uncompressed_bytes == len(ONE_RECORD)
    assert builder.build().hex() == ONE_RECORD.hex()


@pytest.mark.parametrize(("key", "value"), [(b"key", b"value"), (None, b""), (b"k" * 200, None)])
def test_a_batch_of_one_record_has_the_builders_bytes(
    kernel: ModuleType, key: bytes | None, value: bytes | None
) -> None:
    builder = RecordBatchBuilder(max_bytes=1000)
    builder.append(TIMESTAMP, key, value)
    assert kernel.one_record_batch(TIMESTAMP, key, value) == builder.build()


def test_a_batch_of_one_record_refuses_what_does_not_fit(kernel: ModuleType) -> None:
    for timestamp in (2**63, -(2**63) - 1):
        with pytest.raises(ValueError, match=r"timestamp|out of range"):
            kernel.one_record_batch(timestamp, b"k", b"v")
    for key, value in (("k", b"v"), (b"k", 7)):
        with pytest.raises(TypeError):
            kernel.one_record_batch(TIMESTAMP, key, value)


@pytest.mark.parametrize("keys", [None, [b"k", None, b"long" * 20, b"m"]])
@pytest.mark.parametrize("max_bytes", [1, 90, 140, 1000])
def test_values_appended_together_give_the_batch_of_single_appends(
    kernel: ModuleType, keys: list[bytes | None] | None, max_bytes: int
) -> None:
    values = [b"a", None, b"value" * 10, b"z"]
    together, single = RecordBatchBuilder(max_bytes=max_bytes), RecordBatchBuilder(max_bytes=max_bytes)
    for timestamp in (TIMESTAMP, TIMESTAMP + 7):
        count = together.append_values(timestamp, values, [("h", b"x")], keys)
        fitted = 0
        for index, value in enumerate(values):
            if not single.append(timestamp, None if keys is None else keys[index], value, [("h", b"x")]):
                break
            fitted += 1
        assert count == fitted
    assert together.build() == single.build()


def test_values_that_cannot_all_be_appended_leave_the_batch_as_it_was(kernel: ModuleType) -> None:
    builder = RecordBatchBuilder(max_bytes=1000)
    with pytest.raises(TypeError):
        builder.append_values(TIMESTAMP, [b"a", "text"])  # type: ignore[list-item]
    assert (builder.count, builder.uncompressed_bytes) == (0, HEADER_SIZE)
    builder.append(TIMESTAMP, None, b"first")
    before = builder.build()
    for values, keys in (([b"a", 7], None), ([b"a", b"b"], [b"k"])):
        with pytest.raises((TypeError, ValueError)):
            builder.append_values(TIMESTAMP + 9, values, keys=keys)  # type: ignore[arg-type]
    assert builder.build() == before


@given(records, st.sampled_from(Codec), st.integers(0, 2**62))
def test_a_built_batch_is_valid_and_is_read_back(listed: list[Record], codec: Codec, base_offset: int) -> None:
    moved = [record._replace(offset=base_offset + record.offset) for record in listed]
    batch = RecordBatch(build(moved, codec, base_offset=base_offset))
    batch.ensure_valid()
    summary = check_records(batch)
    assert batch.codec is codec
    assert batch.record_count == len(listed)
    assert batch.max_timestamp == summary.max_timestamp == max(record.timestamp for record in listed)
    assert summary.null_keys == sum(record.key is None for record in listed)
    assert read_records(batch) == moved


def test_header_fields_are_written_as_given(kernel: ModuleType) -> None:
    builder = RecordBatchBuilder(
        Codec.LZ4,
        max_bytes=1000,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        append_timestamp=99,
        base_offset=2**40,
        partition_leader_epoch=8,
        producer_id=2**50,
        producer_epoch=4,
        base_sequence=5,
        is_transactional=True,
        is_control=True,
    )
    builder.append(50, b"k", b"v")
    batch = RecordBatch(builder.build())
    batch.ensure_valid()
    assert (batch.base_offset, batch.partition_leader_epoch, batch.codec) == (2**40, 8, Codec.LZ4)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (2**50, 4, 5)
    assert (batch.timestamp_type, batch.base_timestamp, batch.max_timestamp) == (TimestampType.LOG_APPEND_TIME, 50, 99)
    assert batch.is_transactional
    assert batch.is_control
    assert read_records(batch) == [Record(2**40, 99, b"k", b"v")]


def test_the_producer_of_a_batch_can_change_until_it_is_sent(kernel: ModuleType) -> None:
    builder = RecordBatchBuilder(Codec.ZSTD, max_bytes=1000)
    builder.append(50, b"k", b"v")
    assert RecordBatch(builder.build()).producer_id == -1
    builder.producer_id, builder.producer_epoch, builder.base_sequence = 7, 1, 30
    batch = RecordBatch(builder.build())
    batch.ensure_valid()
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (7, 1, 30)
    assert len(read_records(batch)) == 1


def test_a_batch_never_exceeds_its_limit_by_more_than_its_first_record(kernel: ModuleType) -> None:
    builder = RecordBatchBuilder(max_bytes=500)
    appended = 0
    while builder.append(TIMESTAMP + appended, b"key", b"v" * 20):
        appended += 1
    assert builder.count == appended
    assert 500 - 35 < len(builder.build()) <= 500
    builder.append(TIMESTAMP, None, None)
    assert len(builder.build()) <= 500


def test_the_first_record_is_taken_whatever_its_size(kernel: ModuleType) -> None:
    for max_bytes in (0, HEADER_SIZE, 100):
        builder = RecordBatchBuilder(max_bytes=max_bytes)
        assert builder.append(TIMESTAMP, None, b"v" * 1000)
        assert not builder.append(TIMESTAMP, None, None)
        assert len(read_records(RecordBatch(builder.build()))) == 1


def test_the_expected_ratio_stretches_the_limit_of_a_compressed_batch() -> None:
    def fill(codec: Codec, ratio: float) -> RecordBatchBuilder:
        builder = RecordBatchBuilder(codec, max_bytes=4096, expected_ratio=ratio)
        while builder.append(TIMESTAMP, b"key", b"v" * 50):
            pass
        return builder

    plain_count = fill(Codec.ZSTD, 1.0).count
    stretched = fill(Codec.ZSTD, 0.25)
    assert stretched.count > 3.9 * plain_count
    assert stretched.uncompressed_bytes <= 4 * 4096
    assert fill(Codec.NONE, 0.25).count == plain_count  # there is nothing to expect without a codec
    with pytest.raises(ValueError, match="expected_ratio 0"):
        RecordBatchBuilder(Codec.ZSTD, max_bytes=1, expected_ratio=0)


def test_offsets_may_leave_gaps_but_not_go_back(kernel: ModuleType) -> None:
    builder = RecordBatchBuilder(max_bytes=1000, base_offset=10)
    builder.append(1, b"a", b"", offset=12)
    with pytest.raises(ValueError, match="offset 12 comes before 13"):
        builder.append(1, b"b", b"", offset=12)
    builder.append(1, b"b", b"")
    builder.append(1, b"c", b"", offset=20)
    batch = RecordBatch(builder.build())
    assert [record.offset for record in read_records(batch)] == [12, 13, 20]
    assert (batch.base_offset, batch.last_offset, batch.record_count) == (10, 20, 3)


def test_a_refused_record_leaves_the_batch_as_it_was(kernel: ModuleType) -> None:
    builder = RecordBatchBuilder(max_bytes=1000)
    with pytest.raises(TypeError):
        builder.append(5, "text", b"")  # type: ignore[arg-type]
    builder.append(TIMESTAMP, b"k", b"v")
    with pytest.raises(ValueError, match="timestamp delta"):
        builder.append(-(2**63), b"k", b"v")
    with pytest.raises(TypeError):
        builder.append(5, b"k", 5)  # type: ignore[arg-type]
    batch = RecordBatch(builder.build())
    batch.ensure_valid()
    assert read_records(batch) == [Record(0, TIMESTAMP, b"k", b"v")]


def test_an_empty_batch_and_a_field_out_of_range_cannot_be_built(kernel: ModuleType) -> None:
    with pytest.raises(ValueError, match="without records"):
        RecordBatchBuilder(max_bytes=1000).build()
    builder = RecordBatchBuilder(max_bytes=1000, producer_epoch=2**15)
    builder.append(1, b"", b"")
    with pytest.raises(ValueError, match="out of range"):
        builder.build()


@pytest.mark.parametrize("target", Codec)
@pytest.mark.parametrize("source", Codec)
def test_rebuilding_changes_the_codec_and_nothing_else(source: Codec, target: Codec) -> None:
    listed = plain_records(300, 40)
    data = build(
        listed, source, base_offset=40, partition_leader_epoch=3, producer_id=9, producer_epoch=1, base_sequence=2
    )
    before = RecordBatch(data)
    rebuilt = rebuild_batch(before, target)
    after = RecordBatch(rebuilt)
    after.ensure_valid()
    assert after.codec is target
    assert read_records(after) == listed
    assert rebuilt == build(
        listed, target, base_offset=40, partition_leader_epoch=3, producer_id=9, producer_epoch=1, base_sequence=2
    )
    after.stamp_offset_and_epoch(7, 7)  # it may be patched


def test_rebuilding_keeps_flags_and_is_bounded() -> None:
    data = plain(300, Codec.GZIP)
    batch = RecordBatch(data)
    batch.stamp_timestamps(TimestampType.LOG_APPEND_TIME, 5)
    assert RecordBatch(rebuild_batch(batch, Codec.ZSTD)).attributes == 0x0C
    with pytest.raises(DecompressionError):
        rebuild_batch(batch, Codec.ZSTD, max_decompressed_bytes=100)
