"""Batches into columns: both kernels give what reading the records one by one gives, and stop where they must."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.records import Codec, Record, RecordBatch, TimestampType, read_records
from barnabas.protocol.records.kernels.columns_types import Columns, NullableBytes, Stop, Wanted
from barnabas.protocol.records.layout import HEADER_SIZE
from barnabas.protocol.records.reader import MAX_DECOMPRESSED_BYTES, borrow_payload
from tests.support.storage.kernels import load_kernel
from tests.support.storage.records import TIMESTAMP, build, plain, plain_records, records, reseal

MODULES = {
    "compiled": "barnabas.protocol.records.kernels._columns",
    "python": "barnabas.protocol.records.kernels.columns_python",
}
ALL = Wanted.KEY | Wanted.VALUE | Wanted.OFFSET | Wanted.TIMESTAMP | Wanted.TIMESTAMP_TYPE | Wanted.HEADERS
NO_END = 2**63 - 1
UNLIMITED: dict[str, Any] = {"max_rows": 1 << 30, "max_bytes": 1 << 30}


@pytest.fixture(params=MODULES, scope="module")
def builder_type(request: pytest.FixtureRequest) -> Any:
    return load_kernel(request.param, MODULES).ColumnBuilder


def integers(code: str, data: memoryview | None) -> list[int]:
    assert data is not None
    return list(memoryview(bytes(data)).cast(code))  # type: ignore[call-overload]


def parts(rows: int, column: NullableBytes | None) -> list[bytes | None]:
    """The rows of a column, by Arrow's rules."""
    assert column is not None
    ends = integers("i", column.offsets)
    assert len(ends) == rows + 1
    assert ends[0] == 0
    assert len(column.data) == ends[-1]
    assert len(column.validity) == (rows + 7) // 8
    found = [
        bytes(column.data[ends[i] : ends[i + 1]]) if column.validity[i >> 3] >> (i & 7) & 1 else None
        for i in range(rows)
    ]
    assert found.count(None) == column.null_count
    return found


def listed(columns: Columns) -> list[tuple[Record, int]]:
    """The records of columns that were all wanted, with their timestamp types."""
    rows = columns.rows
    headers = columns.headers
    assert headers is not None
    ends = integers("i", headers.offsets)
    valid = [headers.validity[i >> 3] >> (i & 7) & 1 for i in range(rows)]
    assert valid.count(0) == headers.null_count
    assert valid == [int(ends[i + 1] > ends[i]) for i in range(rows)]
    keys = [(key or b"").decode("utf-8", "surrogateescape") for key in parts(headers.header_count, headers.keys)]
    entries = list(zip(keys, parts(headers.header_count, headers.values), strict=True))
    return [
        (Record(offset, time, key, value, tuple(entries[ends[i] : ends[i + 1]])), kind)
        for i, (offset, time, kind, key, value) in enumerate(
            zip(
                integers("q", columns.offset),
                integers("q", columns.timestamp_ms),
                integers("i", columns.timestamp_type),
                parts(rows, columns.key),
                parts(rows, columns.value),
                strict=True,
            )
        )
    ]


def batch_at(base_offset: int, count: int) -> bytearray:
    return plain(count, base_offset=base_offset)


@settings(max_examples=60)
@given(st.lists(records, min_size=1, max_size=4))
def test_columns_have_the_values_of_the_records(builder_type: Any, batches: list[list[Record]]) -> None:
    data = bytearray()
    expected: list[tuple[Record, int]] = []
    for batch in batches:
        stored = build(batch)
        RecordBatch(stored).stamp_offset_and_epoch(len(expected), 0)
        expected += [(record, 0) for record in read_records(RecordBatch(stored))]
        data += stored
    builder = builder_type(ALL, 0, NO_END)

    assert builder.fill(data, 0, **UNLIMITED) is Stop.CUT

    assert builder.position == len(data)
    assert builder.rows == builder.next_offset == len(expected)
    assert listed(builder.take()) == expected
    assert builder.rows == builder.size_bytes == 0


def test_rows_are_taken_once_and_do_not_change_afterwards(builder_type: Any) -> None:
    builder = builder_type(ALL, 0, NO_END)
    builder.fill(batch_at(0, 20), 0, **UNLIMITED)
    first = builder.take()

    builder.fill(batch_at(20, 3), 0, **UNLIMITED)

    assert [record for record, _ in listed(builder.take())] == plain_records(3, 20)
    assert [record for record, _ in listed(first)] == plain_records(20)


@pytest.mark.parametrize("wanted", [Wanted(0), *Wanted, Wanted.OFFSET | Wanted.KEY])
def test_only_the_wanted_columns_are_returned(builder_type: Any, wanted: Wanted) -> None:
    builder = builder_type(wanted, 0, NO_END)
    builder.fill(batch_at(0, 3), 0, **UNLIMITED)

    columns = builder.take()

    assert columns.rows == 3
    there = [column is not None for column in columns[1:]]
    assert there == [bool(wanted & flag) for flag in Wanted]


def test_offsets_outside_of_the_range_are_left_out_and_the_end_is_reported(builder_type: Any) -> None:
    data = batch_at(0, 4) + batch_at(4, 4) + batch_at(8, 4)
    builder = builder_type(Wanted.OFFSET, 2, 6)

    assert builder.fill(data, 0, **UNLIMITED) is Stop.END

    assert integers("q", builder.take().offset) == [2, 3, 4, 5]


def test_a_fill_ends_with_the_batch_that_reaches_the_rows_or_the_bytes(builder_type: Any) -> None:
    data = batch_at(0, 4) + batch_at(4, 4) + batch_at(8, 4)
    builder = builder_type(ALL, 0, NO_END)

    assert builder.fill(data, 0, max_rows=5, max_bytes=1 << 30) is Stop.FULL
    assert builder.rows == 8
    assert len(builder.take().offset) == 64
    assert builder.fill(data, builder.position, max_rows=5, max_bytes=1 << 30) is Stop.CUT
    assert builder.rows == 4

    small = builder_type(ALL, 0, NO_END)
    assert small.fill(data, 0, max_rows=100, max_bytes=1) is Stop.FULL
    assert small.rows == 4


@pytest.mark.parametrize("cut", [1, 16, 40, HEADER_SIZE, HEADER_SIZE + 5])
def test_a_batch_that_the_buffer_cuts_is_left(builder_type: Any, cut: int) -> None:
    first, second = batch_at(0, 4), batch_at(4, 4)
    builder = builder_type(ALL, 0, NO_END)

    assert builder.fill(first + second[:cut], 0, **UNLIMITED) is Stop.CUT

    assert (builder.rows, builder.position) == (4, len(first))


def test_compressed_batches_are_left_to_the_caller_and_taken_decompressed(builder_type: Any) -> None:
    data = batch_at(0, 4) + plain(4, Codec.ZSTD, base_offset=4)
    builder = builder_type(ALL, 0, NO_END)

    assert builder.fill(data, 0, **UNLIMITED) is Stop.COMPRESSED
    batch = RecordBatch(data, builder.position)
    payload = borrow_payload(batch, MAX_DECOMPRESSED_BYTES)
    builder.append_payload(payload, batch.record_count, 4, batch.last_offset_delta, batch.base_timestamp, 77)
    builder.skip(batch.size_bytes, batch.last_offset)

    assert builder.fill(data, builder.position, **UNLIMITED) is Stop.CUT
    found = listed(builder.take())
    assert [record.offset for record, _ in found] == list(range(8))
    assert [(record.timestamp, kind) for record, kind in found[4:]] == [(77, 1)] * 4


def test_under_log_append_time_every_record_has_the_time_of_the_append(builder_type: Any) -> None:
    data = batch_at(0, 2)
    RecordBatch(data).stamp_timestamps(TimestampType.LOG_APPEND_TIME, 50)
    builder = builder_type(ALL, 0, NO_END)
    builder.fill(data, 0, **UNLIMITED)
    assert [(record.timestamp, kind) for record, kind in listed(builder.take())] == [(50, 1)] * 2


def test_control_batches_are_skipped(builder_type: Any) -> None:
    control = batch_at(4, 1)
    control[22] |= 0x30
    builder = builder_type(ALL, 0, NO_END)

    assert builder.fill(batch_at(0, 4) + reseal(control) + batch_at(5, 1), 0, **UNLIMITED) is Stop.CUT

    assert [record.offset for record, _ in listed(builder.take())] == [0, 1, 2, 3, 5]


def test_transactional_batches_are_left_to_the_caller_on_request(builder_type: Any) -> None:
    transactional = batch_at(0, 4)
    transactional[22] |= 0x10
    reseal(transactional)
    assert builder_type(ALL, 0, NO_END).fill(transactional, 0, **UNLIMITED) is Stop.CUT
    builder = builder_type(ALL, 0, NO_END)
    assert builder.fill(transactional, 0, stop_at_transactions=True, **UNLIMITED) is Stop.TRANSACTIONAL
    assert builder.rows == 0


def test_batches_whose_largest_timestamp_is_too_small_are_skipped_unread(builder_type: Any) -> None:
    old = batch_at(0, 4)
    old[-1] ^= 1  # its CRC is wrong now, which nobody looks at
    builder = builder_type(ALL, 0, NO_END)
    assert builder.fill(old + batch_at(4, 4), 0, min_timestamp=TIMESTAMP + 4, **UNLIMITED) is Stop.CUT
    assert builder.rows == 0
    assert builder.fill(old + batch_at(4, 4), len(old), min_timestamp=TIMESTAMP + 3, **UNLIMITED) is Stop.CUT
    assert builder.rows == 4


def test_an_old_message_set_is_left_to_the_caller_and_its_records_are_taken_singly(builder_type: Any) -> None:
    data = batch_at(0, 1)
    data[16] = 1
    builder = builder_type(ALL, 0, 6)
    assert builder.fill(data, 0, **UNLIMITED) is Stop.OLD_FORMAT
    for offset, key, value in ((4, b"k", b"v"), (5, None, None), (6, b"behind", b"the end")):
        builder.append_record(offset, 2**62, 1, key, value)
    found = listed(builder.take())
    assert [record._replace(timestamp=0) for record, _ in found] == [Record(4, 0, b"k", b"v"), Record(5, 0, None, None)]
    assert found[0][0].timestamp == 2**62


def damaged(at: int, value: bytes, *, sealed: bool) -> bytearray:
    data = batch_at(4, 4)
    data[at : at + len(value)] = value
    if sealed:
        reseal(data)
    return data


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (damaged(HEADER_SIZE + 3, b"\xff", sealed=False), "crc"),
        (damaged(16, b"\x09", sealed=False), "magic 9"),
        (damaged(8, struct.pack(">i", 12), sealed=False), "smaller than its header"),
        (damaged(23, struct.pack(">i", -1), sealed=True), "no range"),
        (damaged(0, struct.pack(">q", -9), sealed=False), "no range"),
        (damaged(57, struct.pack(">i", 2**30), sealed=True), "more records"),
        (damaged(57, struct.pack(">i", 3), sealed=True), "left over"),
        (damaged(-20, b"\xff" * 10, sealed=True), "record "),
    ],
)
def test_a_damaged_batch_leaves_no_rows(builder_type: Any, data: bytearray, reason: str) -> None:
    good = batch_at(0, 3)
    builder = builder_type(ALL, 0, NO_END)

    assert builder.fill(good + data, 0, **UNLIMITED) is Stop.CORRUPT

    assert reason in builder.fault
    assert builder.position == len(good)
    builder.skip(len(data), 7)
    builder.fill(good + data + batch_at(8, 9), builder.position, **UNLIMITED)
    expected = plain_records(3) + plain_records(9, 8)
    assert [record for record, _ in listed(builder.take())] == expected


def test_header_keys_that_are_not_utf_8_keep_their_bytes(builder_type: Any) -> None:
    data = build([Record(0, TIMESTAMP, b"k", b"v", (("abc", b"1"), ("é", None)))])
    at = data.index(b"abc")
    data[at : at + 3] = b"a\xff\xfe"
    reseal(data)
    builder = builder_type(ALL, 0, NO_END)
    builder.fill(data, 0, **UNLIMITED)

    assert [record for record, _ in listed(builder.take())] == [read_records(RecordBatch(data))[0]]


@settings(max_examples=150)
@given(st.integers(0, 400), st.binary(min_size=1, max_size=8), st.booleans())
def test_both_kernels_agree_on_damage(at: int, value: bytes, sealed: bool) -> None:
    data = bytes(batch_at(0, 5)) + bytes(batch_at(5, 5))
    at %= len(data)
    hostile = bytearray(data[:at] + value + data[at + len(value) :])[: len(data)]
    outcomes = []
    for name in MODULES:
        builder = load_kernel(name, MODULES).ColumnBuilder(ALL, 0, 9)
        stop = builder.fill(hostile, 0, check_crcs=sealed, **UNLIMITED)
        state = (stop, builder.position, builder.rows, builder.size_bytes, builder.next_offset, builder.fault)
        outcomes.append((state, listed(builder.take())))
    assert outcomes[0] == outcomes[1]
