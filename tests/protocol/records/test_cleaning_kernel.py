"""The cleaner's kernel, compiled and in Python: the same survivors, bytes and errors; the hashes differ."""

from __future__ import annotations

import importlib
from array import array
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.records import Codec, InvalidRecordError, Record, RecordBatch, TimestampType, read_records
from barnabas.protocol.records.errors import CorruptRecordError
from barnabas.protocol.records.kernels.cleaned import ENTRY_BYTES, HASH_MASK, FilteredBatches, FilterRules, Stop
from tests.support.storage.records import TIMESTAMP, build, reseal

MODULES = {
    "compiled": "barnabas.protocol.records.kernels._cleaning",
    "python": "barnabas.protocol.records.kernels.cleaning_python",
}
SECRET = bytes(range(16))
RULES = FilterRules(latest_offset=1 << 40, now_ms=100, new_horizon_ms=500, round_end_offset=-5, last_data_batches=b"")

NewTable = Callable[..., Any]


def both_passes(data: bytearray) -> tuple[Callable[[Any], object], Callable[[Any], object]]:
    """Over these bytes, with a table."""

    def add(table: Any) -> object:
        return table.add_batches(data, len(data), 0, 9)

    def keep(table: Any) -> object:
        return table.filter_batches(data, len(data), bytearray(5000), RULES)

    return add, keep


def load(name: str) -> ModuleType:
    try:
        return importlib.import_module(MODULES[name])
    except ImportError:
        if name == "compiled":
            pytest.skip("the compiled kernel was not built on this machine")
        raise


@pytest.fixture(params=sorted(MODULES))
def new_table(request: pytest.FixtureRequest) -> NewTable:
    module = load(request.param)

    def make(slots: int = 100, mask: int = HASH_MASK) -> Any:
        return module.OffsetTable(memoryview(bytearray(slots * ENTRY_BYTES)), SECRET, mask)

    return make


def record(offset: int, key: bytes | None, value: bytes | None = b"v", timestamp: int = TIMESTAMP) -> Record:
    return Record(offset, timestamp, key, value)


def filtered(table: Any, *batches: bytes | bytearray | memoryview, rules: FilterRules = RULES) -> list[RecordBatch]:
    data = b"".join(batches)
    output = bytearray(len(data) + 1000)
    found = table.filter_batches(data, len(data), output, rules)
    assert (found.position, found.stop) == (len(data), Stop.CUT)
    kept = [RecordBatch(bytes(output[position : position + size])) for position, size, _, _ in found.batches]
    for batch, (_, _, last_offset, max_timestamp) in zip(kept, found.batches, strict=True):
        batch.ensure_valid()
        assert (batch.last_offset, batch.max_timestamp) == (last_offset, max_timestamp)
    return kept


def test_a_key_has_the_offset_that_was_put_last(new_table: NewTable) -> None:
    table = new_table()
    for offset in range(300):
        table.put(b"%d" % (offset % 90), offset)
    assert [table.get(b"%d" % key) for key in range(90)] == [*range(270, 300), *range(210, 270)]
    assert table.get(b"none") == -1
    assert table.entries == 90


@pytest.mark.parametrize("mask", [HASH_MASK, 0xF, 2**64 - 1, (2**64 - 1) << 64], ids=hex)
def test_every_slot_can_be_taken_and_found_again(new_table: NewTable, mask: int) -> None:
    """Down to hashes of 4 bits of which all others are cut off: then the first 16 keys fill what can be told apart."""
    table = new_table(16, mask)
    keys = [b"key %d" % number for number in range(200)]
    stored: dict[bytes, int] = {}
    for offset, key in enumerate(keys):
        if table.get(key) == -1 and table.entries < 16:
            table.put(key, offset)
            stored[key] = offset
    assert len(stored) == table.entries
    assert {key: table.get(key) for key in stored} == stored
    if table.entries == 16:
        with pytest.raises(ValueError, match="full"):
            table.put(keys[0], 1)
        assert table.get(b"none of them") in {-1, *stored.values()}


def test_keys_whose_hashes_share_a_prefix_do_not_replace_each_other(new_table: NewTable) -> None:
    table = new_table(100, (2**64 - 1) << 64)  # all begin in the same slot
    table.add_records(build([record(i, b"%d" % i) for i in range(50)])[61:], 50, 0, 49, TIMESTAMP, 0, 90)
    assert [table.get(b"%d" % key) for key in range(50)] == list(range(50))


def test_keys_with_the_same_hash_are_one_key(new_table: NewTable) -> None:
    """What a hash of 128 bits makes as good as impossible; Kafka's map does the same."""
    table = new_table(100, 0)
    data = build([record(0, b"a"), record(1, b"b")])
    table.add_batches(data, len(data), 0, 90)
    assert table.entries == 1
    assert [each.key for batch in filtered(table, data) for each in read_records(batch)] == [b"b"]


def test_a_full_table_ends_the_pass_in_the_middle_of_a_batch(new_table: NewTable) -> None:
    table = new_table()
    first = build([record(0, b"a"), record(1, b"b")])
    second = build([record(2, b"a"), record(3, b"c"), record(4, b"a")], base_offset=2)
    added = table.add_batches(first + second, len(first + second), 0, 2)
    assert added == (len(first), Stop.FULL, 2, 1)
    added = new_table().add_batches(first + second, len(first + second), 1, 4)
    assert added == (len(first + second), Stop.CUT, 5, 4)


@pytest.mark.parametrize(
    ("codec", "header"),
    [(Codec.GZIP, {}), (Codec.NONE, {"is_transactional": True, "producer_id": 1}), (Codec.NONE, {"is_control": True})],
)
def test_batches_that_are_not_plain_are_left_to_callers(
    new_table: NewTable, codec: Codec, header: dict[str, Any]
) -> None:
    plain = build([record(0, b"a")])
    other = build([record(1, b"b")], codec, base_offset=1, **header)
    data = bytes(plain + other)
    assert new_table().add_batches(data, len(data), 0, 9)[:2] == (len(plain), Stop.ASIDE)
    assert new_table().filter_batches(data, len(data), bytearray(999), RULES)[:2] == (len(plain), Stop.ASIDE)


def test_a_batch_that_loses_nothing_is_copied_byte_for_byte(new_table: NewTable) -> None:
    data = build([record(5, b"a"), record(7, b"b")], base_offset=5, producer_id=3, producer_epoch=1, base_sequence=4)
    assert [bytes(batch.bytes) for batch in filtered(new_table(), data)] == [data]


def test_a_rewritten_batch_keeps_its_offsets_and_takes_the_first_kept_records_time(new_table: NewTable) -> None:
    table = new_table()
    table.put(b"a", 9)
    data = build(
        [record(5, b"a", timestamp=TIMESTAMP + 70), record(6, b"b", timestamp=TIMESTAMP + 3), record(8, b"a")],
        base_offset=5,
        producer_id=3,
        producer_epoch=1,
        base_sequence=4,
        partition_leader_epoch=2,
    )
    (batch,) = filtered(table, data)
    assert read_records(batch) == [record(6, b"b", timestamp=TIMESTAMP + 3)]
    assert (batch.base_offset, batch.last_offset, batch.record_count) == (5, 8, 1)
    assert batch.base_timestamp == batch.max_timestamp == TIMESTAMP + 3
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.partition_leader_epoch) == (3, 1, 4, 2)


def test_the_first_kept_tombstone_sets_the_delete_horizon_after_which_it_is_dropped(new_table: NewTable) -> None:
    data = build([record(0, b"a", None), record(1, b"b", timestamp=TIMESTAMP + 9)])
    (batch,) = filtered(new_table(), data)
    assert (batch.has_delete_horizon, batch.base_timestamp, batch.max_timestamp) == (True, 500, TIMESTAMP + 9)
    assert read_records(batch) == [record(0, b"a", None), record(1, b"b", timestamp=TIMESTAMP + 9)]
    again = filtered(new_table(), batch.bytes, rules=RULES._replace(now_ms=499))
    assert [bytes(each.bytes) for each in again] == [batch.bytes]
    (last,) = filtered(new_table(), batch.bytes, rules=RULES._replace(now_ms=500))
    assert read_records(last) == [record(1, b"b", timestamp=TIMESTAMP + 9)]
    assert (last.has_delete_horizon, last.base_timestamp) == (True, 500)


def test_under_log_append_time_all_kept_records_have_the_batchs_time(new_table: NewTable) -> None:
    table = new_table()
    table.put(b"a", 9)
    data = build(
        [record(0, b"a", timestamp=1), record(1, b"b", timestamp=2)],
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        append_timestamp=TIMESTAMP,
    )
    (batch,) = filtered(table, data)
    assert (batch.base_timestamp, batch.max_timestamp, batch.timestamp_type) == (TIMESTAMP, TIMESTAMP, 1)


@pytest.mark.parametrize(
    ("producer_id", "rules", "stays"),
    [
        (3, RULES, False),
        (3, RULES._replace(round_end_offset=2), True),
        (-1, RULES._replace(round_end_offset=2), True),
        (3, RULES._replace(last_data_batches=array("q", [0, 3, 1, 3, 5, 3]).tobytes()), True),
        (3, RULES._replace(last_data_batches=array("q", [1, 4]).tobytes()), False),
    ],
)
def test_an_emptied_batch_stays_if_it_is_the_last(
    new_table: NewTable, producer_id: int, rules: FilterRules, stays: bool
) -> None:
    table = new_table()
    table.put(b"a", 9)
    data = build([record(0, b"a"), record(1, b"a")], producer_id=producer_id, producer_epoch=1, base_sequence=7)
    kept = filtered(table, data, rules=rules)
    assert len(kept) == stays
    for batch in kept:
        assert (batch.size_bytes, batch.record_count, batch.last_offset, batch.base_timestamp) == (61, 0, 1, -1)
        assert (batch.max_timestamp, batch.producer_id, batch.base_sequence) == (TIMESTAMP, producer_id, 7)


def test_records_without_a_key_are_dropped_up_to_the_tables_last_offset(new_table: NewTable) -> None:
    data = build([record(0, None), record(1, b"a"), record(2, None)])
    output = bytearray(1000)
    found = new_table().filter_batches(data, len(data), output, RULES._replace(latest_offset=1))
    assert (found.records_read, found.records_written, found.records_invalid) == (3, 2, 1)
    assert [each.offset for each in read_records(RecordBatch(output[: found.output_bytes]))] == [1, 2]


def test_an_output_that_is_too_small_ends_the_pass_before_the_batch(new_table: NewTable) -> None:
    first, second = build([record(0, b"a")]), build([record(1, b"b" * 100)], base_offset=1)
    data = bytes(first + second)
    found = new_table().filter_batches(data, len(data), bytearray(len(data) - 1), RULES)
    assert found[:3] == (len(first), Stop.NO_ROOM, len(first))
    assert found.room_needed == len(second)


@pytest.mark.parametrize("at", [0, 8, 16, 17, 23, 60, 69])
def test_a_flipped_byte_is_detected(new_table: NewTable, at: int) -> None:
    data = build([record(0, b"a")])
    data[at] ^= 0x80
    for run in both_passes(data):
        if at == 8:
            with pytest.raises(CorruptRecordError, match="no batch at position 0 of the buffer"):
                run(new_table())
        else:
            with pytest.raises(CorruptRecordError, match="position 0"):
                run(new_table())


def test_records_that_break_the_format_are_refused(new_table: NewTable) -> None:
    data = build([record(0, b"a"), record(1, b"b")])
    data[57:61] = (1).to_bytes(4, "big")
    reseal(data)
    with pytest.raises(InvalidRecordError, match="left over after the last"):
        new_table().add_batches(data, len(data), 0, 9)
    with pytest.raises(InvalidRecordError, match="left over after the last"):
        new_table().filter_batches(data, len(data), bytearray(999), RULES)


def test_a_closed_table_is_empty_and_releases_its_memory(new_table: NewTable) -> None:
    table = new_table()
    table.put(b"a", 1)
    table.close()
    table.close()
    assert (table.entries, table.slots, table.get(b"a")) == (0, 0, -1)


_keys = st.sampled_from([None, b"", b"a", b"bb", b"c" * 20])
_records = st.lists(
    st.tuples(_keys, st.none() | st.binary(max_size=9), st.integers(-1, 1 << 41), st.integers(1, 200)), max_size=40
)


@settings(deadline=None)
@given(
    listed=st.lists(_records, min_size=1, max_size=4),
    puts=st.lists(st.tuples(_keys, st.integers(0, 3000)), max_size=6),
    has_horizon=st.booleans(),
    has_append_time=st.booleans(),
    now_ms=st.integers(0, 1 << 41),
    latest=st.integers(-1, 4000),
)
def test_both_kernels_give_the_same_bytes(
    listed: list[list[tuple[bytes | None, bytes | None, int, int]]],
    puts: list[tuple[bytes | None, int]],
    has_horizon: bool,
    has_append_time: bool,
    now_ms: int,
    latest: int,
) -> None:
    offset = 0
    data = bytearray()
    for items in listed:
        base, records = offset, []
        for key, value, timestamp, gap in items:
            records.append(Record(offset, timestamp, key, value, (("h", value),) if gap > 100 else ()))
            offset += gap
        if records:
            batch = build(records, base_offset=base, timestamp_type=TimestampType(has_append_time))
            if has_horizon:
                batch[22] |= 0x40
            data += reseal(batch)
    rules = RULES._replace(now_ms=now_ms, new_horizon_ms=now_ms + 10, latest_offset=latest, round_end_offset=offset)
    results: list[tuple[object, FilteredBatches, bytes]] = []
    for name in MODULES:
        table = load(name).OffsetTable(memoryview(bytearray(99 * ENTRY_BYTES)), SECRET)
        for key, put in puts:
            if key is not None:
                table.put(key, put)
        added = table.add_batches(data, len(data), 100, 3)
        output = bytearray(2 * len(data) + 1000)
        found = table.filter_batches(data, len(data), output, rules)
        results.append((added, found, bytes(output[: found.output_bytes])))
    assert results[0] == results[1]


@settings(deadline=None, max_examples=300)
@given(noise=st.binary(max_size=300), at=st.integers(0, 200))
def test_hostile_bytes_raise_decode_errors_and_the_same_ones(noise: bytes, at: int) -> None:
    data = build([record(0, b"a"), record(1, b"b", None), record(3, None)])
    start = 61 + at % (len(data) - 61)
    data[start : start + len(noise)] = noise
    reseal(data)
    results: list[object] = []
    for name in MODULES:
        table = load(name).OffsetTable(memoryview(bytearray(99 * ENTRY_BYTES)), SECRET)
        for run in both_passes(data):
            try:
                results.append(run(table))
            except (CorruptRecordError, InvalidRecordError) as error:
                results.append(str(error))
    assert results[:2] == results[2:]
