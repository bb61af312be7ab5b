"""Reading batches: the deep check, bounded decompression, look-ups by timestamp, and damaged batches of all codecs."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.records import (
    Codec,
    DecompressionError,
    InvalidRecordError,
    Record,
    RecordBatch,
    RecordsSummary,
    TimestampType,
    check_records,
    find_record_by_timestamp,
    first_record_with_max_timestamp,
    read_records,
)
from barnabas.protocol.records.layout import HEADER_SIZE
from tests.support.storage.records import TIMESTAMP, build, plain, plain_records, records, reseal


@pytest.mark.parametrize("codec", Codec)
def test_a_check_returns_the_summary_for_storage(kernel: ModuleType, codec: Codec) -> None:
    listed = [Record(0, 20, b"k", b"v"), Record(1, 30, None, b"v"), Record(2, 10, b"k", None)]
    size = len(build(listed)) - HEADER_SIZE
    assert check_records(RecordBatch(build(listed, codec))) == RecordsSummary(30, 1, 10, 1, size)


@pytest.mark.parametrize("codec", Codec)
def test_under_log_append_time_every_record_has_the_time_of_the_append(kernel: ModuleType, codec: Codec) -> None:
    batch = RecordBatch(plain(3, codec))
    batch.stamp_timestamps(TimestampType.LOG_APPEND_TIME, 50)
    assert check_records(batch)[:3] == (50, 0, 50)
    assert [record.timestamp for record in read_records(batch)] == [50, 50, 50]
    assert find_record_by_timestamp(batch, 50) == (0, 50)
    assert find_record_by_timestamp(batch, 51) is None
    assert first_record_with_max_timestamp(batch) == (0, 50)


@pytest.mark.parametrize(("position", "value"), [(57, 4), (57, 2), (57, 0), (57, -1), (23, 3), (23, 1), (23, -1)])
def test_a_count_and_an_offset_delta_that_disagree_are_refused(kernel: ModuleType, position: int, value: int) -> None:
    data = plain(3)
    data[position : position + 4] = value.to_bytes(4, "big", signed=True)
    with pytest.raises(InvalidRecordError) as caught:
        check_records(RecordBatch(reseal(data)))
    assert caught.value.index == InvalidRecordError.BATCH


def test_a_batch_without_records_is_refused_from_a_client(kernel: ModuleType) -> None:
    data = plain(1)[:HEADER_SIZE]
    data[57:61] = bytes(4)
    for delta in (0, -1):
        data[23:27] = delta.to_bytes(4, "big", signed=True)
        batch = RecordBatch(reseal(data))
        with pytest.raises(InvalidRecordError, match="counts 0 records"):
            check_records(batch)
        assert check_records(batch, contiguous=False) == RecordsSummary(-1, -1, -1, 0, 0)
        assert read_records(batch) == []


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("count", [2, 4])
def test_a_wrong_count_is_refused(kernel: ModuleType, codec: Codec, count: int) -> None:
    data = plain(3, codec)
    data[57:61] = count.to_bytes(4, "big")
    data[23:27] = (count - 1).to_bytes(4, "big")
    for use in (check_records, read_records):
        with pytest.raises(InvalidRecordError):
            use(RecordBatch(reseal(data)))


def test_a_compacted_batch_passes_only_where_gaps_are_allowed(kernel: ModuleType) -> None:
    batch = RecordBatch(build([Record(2, 10, b"a", b""), Record(7, 5, b"b", b"")]))
    assert check_records(batch, contiguous=False)[:2] == (10, 2)
    assert first_record_with_max_timestamp(batch) == (2, 10)
    with pytest.raises(InvalidRecordError):
        check_records(batch)


@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_records_that_grow_beyond_the_limit_are_refused(kernel: ModuleType, codec: Codec) -> None:
    batch = RecordBatch(build([Record(0, 0, None, bytes(1 << 20))], codec))
    assert batch.size_bytes < 100_000
    uses = (
        lambda limit: check_records(batch, max_decompressed_bytes=limit),
        lambda limit: read_records(batch, max_decompressed_bytes=limit),
        lambda limit: find_record_by_timestamp(batch, 0, max_decompressed_bytes=limit),
        lambda limit: first_record_with_max_timestamp(batch, max_decompressed_bytes=limit),
    )
    for use in uses:
        assert use((1 << 20) + 100)
        with pytest.raises(DecompressionError, match="hold more than 1048576 bytes"):
            use(1 << 20)


@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_a_batch_that_claims_a_codec_it_does_not_have_is_refused(kernel: ModuleType, codec: Codec) -> None:
    data = plain(3)
    data[22] = codec
    with pytest.raises((DecompressionError, InvalidRecordError)):
        check_records(RecordBatch(reseal(data)))


@pytest.mark.parametrize("codec", Codec)
def test_look_ups_by_timestamp_take_the_first_record_that_fits(kernel: ModuleType, codec: Codec) -> None:
    listed = [Record(5, 50, b"", b""), Record(6, 40, b"", b""), Record(9, 60, b"", b""), Record(10, 60, b"", b"")]
    batch = RecordBatch(build(listed, codec, base_offset=5))
    assert find_record_by_timestamp(batch, 0) == (5, 50)
    assert find_record_by_timestamp(batch, 51) == (9, 60)
    assert find_record_by_timestamp(batch, 61) is None
    assert first_record_with_max_timestamp(batch) == (9, 60)


def test_records_without_timestamps_have_no_maximum(kernel: ModuleType) -> None:
    assert first_record_with_max_timestamp(RecordBatch(build([Record(0, -1, b"", b"")]))) is None


def test_a_large_batch_is_read_while_other_threads_run(kernel: ModuleType) -> None:
    """Beyond 32 KiB the kernel gives up the GIL: the results must be the same."""
    batch = RecordBatch(plain(5000))
    assert check_records(batch)[:4] == (TIMESTAMP + 4999, 4999, TIMESTAMP, 0)
    assert read_records(batch) == plain_records(5000)
    assert find_record_by_timestamp(batch, TIMESTAMP + 4998) == (4998, TIMESTAMP + 4998)


@settings(max_examples=300)
@given(records, st.sampled_from(Codec), st.lists(st.tuples(st.integers(21, 500), st.integers(0, 255)), max_size=4))
def test_a_damaged_batch_with_a_good_crc_raises_decode_errors_only(
    listed: list[Record], codec: Codec, damage: list[tuple[int, int]]
) -> None:
    data = build(listed, codec)
    for position, byte in damage:
        data[position % (len(data) - 21) + 21] = byte
    batch = RecordBatch(reseal(data))
    for use in (check_records, read_records, first_record_with_max_timestamp):
        try:
            use(batch, max_decompressed_bytes=1 << 20)
        except DecodeError:
            pass
