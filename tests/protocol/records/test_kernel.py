"""The per-record work: what it finds, what it refuses, and that the compiled kernel and its twin are the same."""

from __future__ import annotations

import gc
import os
import struct
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.clients.records import ConsumerRecord
from barnabas.protocol.records import (
    CorruptRecordError,
    InvalidRecordError,
    Record,
    RecordsSummary,
    errors,
    layout,
)
from tests.support.storage.kernels import load_kernel
from tests.support.storage.records import TIMESTAMP, build, plain, records

HEADER_SIZE = layout.HEADER_SIZE
# size, attributes, timestamp delta, offset delta, null key, null value, no headers
LEAST = bytes([12, 0, 0, 0, 1, 1, 0])


def payload_of(batch: bytearray) -> bytes:
    return bytes(batch[HEADER_SIZE:])


def varint(value: int) -> bytes:
    zigzag = (value << 1) ^ (value >> 63)
    out = bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes(out) + bytes([zigzag])


def record(
    *,
    timestamp: bytes = b"\x00",
    offset: bytes = b"\x00",
    key: bytes = b"\x01",
    value: bytes = b"\x01",
    headers: bytes = b"\x00",
    size: int = 0,
) -> bytes:
    """One record from the encodings of its parts; `size` is added to its true size."""
    body = b"\x00" + timestamp + offset + key + value + headers
    return varint(len(body) + size) + body


def test_the_sizes_in_the_compiled_kernel_are_those_of_the_layout(kernel: ModuleType) -> None:
    """A batch of the least size and the least record pass, one byte less does not."""
    assert len(LEAST) == layout.MIN_RECORD_SIZE
    assert kernel.check_payload(LEAST, 1, 0, 0, True)
    head = struct.pack(">qiibIhi", 0, HEADER_SIZE - layout.LOG_OVERHEAD, 0, layout.MAGIC_V2, 0, 0, 0)
    assert kernel.find_batch(head, 0, 0) == (0, 0, 0, HEADER_SIZE)
    with pytest.raises(CorruptRecordError):
        kernel.find_batch(head[:11] + bytes([head[11] - 1]) + head[12:], 0, 0)


def test_a_check_finds_the_timestamps_and_the_null_keys(kernel: ModuleType) -> None:
    listed = [
        Record(0, 50, b"k", b"v"),
        Record(1, 70, None, b"v"),
        Record(2, -1, None, None),
        Record(3, 70, b"", b""),
        Record(4, 40, b"k", None, (("h", b"x"), ("", None))),
    ]
    payload = payload_of(build(listed))
    assert kernel.check_payload(payload, 5, 4, 50, True) == RecordsSummary(70, 1, 40, 2, len(payload))


def test_a_check_of_records_without_timestamps_finds_none(kernel: ModuleType) -> None:
    payload = payload_of(build([Record(0, -1, b"k", b"v"), Record(1, -1, b"k", b"v")]))
    assert kernel.check_payload(payload, 2, 1, -1, True) == RecordsSummary(-1, -1, -1, 0, len(payload))


def test_a_batch_emptied_by_compaction_is_valid(kernel: ModuleType) -> None:
    assert kernel.check_payload(b"", 0, 7, -1, False) == RecordsSummary(-1, -1, -1, 0, 0)
    assert kernel.decode_payload(b"", 0, 5, 7, -1, None) == []


def test_decoding_gives_absolute_offsets_and_timestamps(kernel: ModuleType) -> None:
    payload = payload_of(build([Record(10, 50, b"k", None), Record(13, 20, None, b"v", (("ü", b""),))], base_offset=8))
    expected = [Record(1002, 50, b"k", None), Record(1005, 20, None, b"v", (("ü", b""),))]
    decoded = kernel.decode_payload(payload, 2, 1000, 5, 50, None)
    assert decoded == expected
    assert type(decoded[0]) is Record
    assert decoded[1].headers == (("ü", b""),)
    assert kernel.decode_payload(payload, 2, 1000, 5, 50, 99) == [entry._replace(timestamp=99) for entry in expected]


def test_rows_have_the_fields_of_the_records_and_three_more(kernel: ModuleType) -> None:
    payload = payload_of(build([Record(10, 50, b"k", None), Record(13, 20, None, b"v", (("ü", b""),))], base_offset=8))
    decoded = kernel.decode_fetched(payload, 2, 1000, 5, 50, None, ConsumerRecord, "t", 3, 0)
    assert decoded == [
        ConsumerRecord("t", 3, 1002, 50, 0, b"k", None, ()),
        ConsumerRecord("t", 3, 1005, 20, 0, None, b"v", (("ü", b""),)),
    ]
    assert type(decoded[0]) is ConsumerRecord
    assert decoded[1].headers == (("ü", b""),)
    appended = kernel.decode_fetched(payload, 2, 1000, 5, 50, 99, ConsumerRecord, "t", 3, 1)
    assert appended == [entry._replace(timestamp=99, timestamp_type=1) for entry in decoded]


def test_a_header_key_that_is_not_utf8_is_written_again_as_it_was(kernel: ModuleType) -> None:
    payload = record(headers=varint(2) + varint(2) + b"a\xff" + varint(-1) + varint(1) + b"\xfe" + varint(-1))
    headers = kernel.decode_payload(payload, 1, 0, 0, 0, None)[0].headers
    assert headers == (("a\udcff", None), ("\udcfe", None))
    written = bytearray()
    kernel.append_record(written, -1, 0, 0, None, None, headers)
    assert written == payload


def test_decoded_records_are_untracked_by_the_collector() -> None:
    """Somebody who keeps millions of records would pay for them in every full collection."""
    payload = payload_of(build([Record(0, 1, b"k", b"v", (("h", b"x"),))]))
    decoded = load_kernel("compiled").decode_payload(payload, 1, 0, 0, 1, None)
    assert not gc.is_tracked(decoded[0])
    assert decoded[0]._replace(offset=7) == Record(7, 1, b"k", b"v", (("h", b"x"),))
    assert not gc.is_tracked(
        load_kernel("compiled").decode_fetched(payload, 1, 0, 0, 1, None, ConsumerRecord, "t", 0, 0)[0]
    )


@pytest.mark.parametrize(
    ("payload", "count", "index", "reason"),
    [
        (b"", 1, -1, errors.BAD_COUNT),
        (LEAST, 2, -1, errors.BAD_COUNT),
        (LEAST, -1, -1, errors.BAD_COUNT),
        (LEAST, 2**31 - 1, -1, errors.BAD_COUNT),
        (LEAST + b"\x00", 1, -1, errors.BYTES_AFTER_LAST),
        (LEAST, 0, -1, errors.BYTES_AFTER_LAST),
        (b"\x80" * 7, 1, 0, errors.BAD_VARINT),
        (b"\xff\xff\xff\xff\x10\x00\x00", 1, 0, errors.BAD_VARINT),
        (LEAST + b"\x80" * 5 + LEAST[:3], 2, 1, errors.BAD_VARINT),
        (record(value=varint(5) + b"hello") + b"\x80" * 4, 2, 1, errors.CUT_SHORT),
        (b"\x0e" + LEAST[1:], 1, 0, errors.CUT_SHORT),
        (b"\xfe\xff\xff\xff\x0f" + LEAST[1:], 1, 0, errors.CUT_SHORT),
        (b"\x0a" + LEAST[1:], 1, 0, errors.BAD_SIZE),
        (b"\x01" + LEAST[1:], 1, 0, errors.BAD_SIZE),
        (record(timestamp=b"\xff" * 10), 1, 0, errors.BAD_VARINT),
        (record(timestamp=b"\xff" * 9 + b"\x02"), 1, 0, errors.BAD_VARINT),
        (varint(6) + b"\x00" + b"\x80" * 5 + LEAST, 1, 0, errors.BAD_SIZE),
        (record(timestamp=varint(2**63 - 1)), 1, 0, errors.BAD_TIMESTAMP),
        (record(offset=varint(1)), 1, 0, errors.BAD_OFFSET),
        (record(offset=varint(-1)), 1, 0, errors.BAD_OFFSET),
        (record() + record(), 2, 1, errors.BAD_OFFSET),
        (record() + record(offset=varint(2)), 2, 1, errors.BAD_OFFSET),
        (record(key=varint(-2)), 1, 0, errors.BAD_KEY),
        (record(key=varint(100)), 1, 0, errors.BAD_KEY),
        (record(key=varint(2**31 - 1)), 1, 0, errors.BAD_KEY),
        (record(key=varint(2) + b"kk", value=b"", headers=b""), 1, 0, errors.BAD_SIZE),
        (record(value=varint(-2)), 1, 0, errors.BAD_VALUE),
        (record(value=varint(2)), 1, 0, errors.BAD_VALUE),
        (record(value=varint(1) + b"v", headers=b""), 1, 0, errors.BAD_SIZE),
        (record(headers=varint(-1)), 1, 0, errors.BAD_HEADERS),
        (record(headers=varint(1)), 1, 0, errors.BAD_HEADERS),
        (record(headers=varint(2**31 - 1) + b"\x00\x01"), 1, 0, errors.BAD_HEADERS),
        (record(headers=varint(1) + varint(-1) + varint(-1)), 1, 0, errors.BAD_HEADERS),
        (record(headers=varint(1) + varint(9) + varint(-1)), 1, 0, errors.BAD_HEADERS),
        (record(headers=varint(1) + varint(0) + varint(-2)), 1, 0, errors.BAD_HEADERS),
        (record(headers=varint(1) + varint(0) + varint(1)), 1, 0, errors.BAD_HEADERS),
        (record(headers=varint(1) + varint(1) + b"h" + b"\x80"), 1, 0, errors.BAD_HEADERS),
        (record(headers=b"\x00" + b"left over"), 1, 0, errors.LEFT_OVER),
        (record(headers=varint(1) + varint(0) + varint(-1) + b"x"), 1, 0, errors.LEFT_OVER),
    ],
    ids=lambda value: value.hex() if isinstance(value, bytes) else None,
)
def test_a_record_that_breaks_the_format_is_named(
    kernel: ModuleType, payload: bytes, count: int, index: int, reason: str
) -> None:
    with pytest.raises(InvalidRecordError) as caught:
        kernel.check_payload(payload, count, max(count, 1) - 1, 1, True)
    assert (caught.value.index, caught.value.reason) == (index, reason)


@pytest.mark.parametrize(("deltas", "bad"), [((0, 3, 9), None), ((0, 3, 3), 2), ((4, 3, 5), 1), ((0, 1, 10), 2)])
def test_a_compacted_log_may_have_gaps_but_its_offsets_ascend(
    kernel: ModuleType, deltas: tuple[int, ...], bad: int | None
) -> None:
    payload = b"".join(record(offset=varint(delta)) for delta in deltas)
    if bad is None:
        assert kernel.check_payload(payload, 3, 9, 0, False)
        return
    for call in (kernel.check_payload, kernel.decode_payload):
        with pytest.raises(InvalidRecordError) as caught:
            call(payload, 3, *((9, 0, False) if call is kernel.check_payload else (0, 9, 0, None)))
        assert (caught.value.index, caught.value.reason) == (bad, errors.BAD_OFFSET)


def test_an_offset_beyond_int64_is_refused(kernel: ModuleType) -> None:
    payload = record() + record(offset=varint(1))
    assert [entry.offset for entry in kernel.decode_payload(payload, 2, 2**63 - 2, 1, 0, None)][1] == 2**63 - 1
    with pytest.raises(InvalidRecordError) as caught:
        kernel.decode_payload(payload, 2, 2**63 - 1, 1, 0, None)
    assert (caught.value.index, caught.value.reason) == (1, errors.BAD_OFFSET)


def test_a_timestamp_is_found_at_the_first_record_that_has_it_or_a_later_one(kernel: ModuleType) -> None:
    payload = payload_of(build([Record(0, 50, b"", b""), Record(1, 40, b"", b""), Record(2, 60, b"", b"")]))
    found = [kernel.find_timestamp(payload, 3, 2, 50, target) for target in (-(2**63), 40, 50, 51, 60, 61)]
    assert found == [(0, 50), (0, 50), (0, 50), (2, 60), (2, 60), None]


def test_a_search_stops_before_a_later_bad_record(kernel: ModuleType) -> None:
    payload = record() + b"\xff" * 7
    assert kernel.find_timestamp(payload, 2, 1, 5, 5) == (0, 5)
    with pytest.raises(InvalidRecordError):
        kernel.find_timestamp(payload, 2, 1, 5, 6)


@pytest.mark.parametrize(
    ("frame", "gap", "end"),
    [
        ("00000000", 0, 0),
        ("01000080 00 00000000", 0, 5),  # one byte, stored as it is
        ("00000080 00000000", 0, 0),  # no bytes, stored as they are
        ("01000000 0f 00000000", 0, 0),  # no bytes, compressed
        ("01000000 10 00000000", 0, 5),
        ("02000000 ffff aabbccdd 00000000", 4, 10),
        ("02000000 ffff", 0, -1),
        ("ffffff7f ffff 00000000", 0, -1),
        ("01000000", 0, -1),
        ("000000", 0, -1),
        ("", 0, -1),
    ],
)
def test_the_end_of_an_lz4_frame_is_found(kernel: ModuleType, frame: str, gap: int, end: int) -> None:
    before = b"before"
    found = kernel.find_lz4_end(before + bytes.fromhex(frame), len(before), gap)
    assert found == (end if end < 0 else end + len(before))


# --- writing


@given(records)
def test_appended_records_are_decoded(listed: list[Record]) -> None:
    for kernel in (load_kernel("compiled"), load_kernel("python")):
        target = bytearray(b"before")
        base = listed[0].timestamp
        for entry in listed:
            args = (entry.offset, entry.timestamp - base, entry.key, entry.value, entry.headers)
            before = len(target)
            assert kernel.append_record(target, -1, *args) == len(target) - before
        assert target.startswith(b"before")
        decoded = kernel.decode_payload(memoryview(target)[6:], len(listed), 0, len(listed) - 1, base, None)
        assert decoded == listed


def test_a_record_beyond_the_limit_leaves_no_trace(kernel: ModuleType) -> None:
    target = bytearray(b"before")
    size = kernel.append_record(bytearray(), -1, 0, 0, b"k", b"v", ())
    assert kernel.append_record(target, len(target) + size - 1, 0, 0, b"k", b"v", ()) == 0
    assert target == b"before"
    assert kernel.append_record(target, len(target) + size, 0, 0, b"k", b"v", ()) == size


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((-1, 0, b"", b"", ()), ValueError),
        ((2**31, 0, b"", b"", ()), ValueError),
        ((2**70, 0, b"", b"", ()), ValueError),
        ((0, 2**63, b"", b"", ()), ValueError),
        ((0, -(2**63) - 1, b"", b"", ()), ValueError),
        ((0, 0, "text", b"", ()), TypeError),
        ((0, 0, b"", 7, ()), TypeError),
        ((0, 0, b"", b"", (("h", "text"),)), TypeError),
        ((0, 0, b"", b"", (("\ud800", b""),)), ValueError),
        ((0, 0, b"", b"", (("h",),)), ValueError),
    ],
)
def test_a_value_that_no_record_can_hold_leaves_no_trace(
    kernel: ModuleType, arguments: tuple[Any, ...], error: type[Exception]
) -> None:
    target = bytearray(b"before")
    with pytest.raises(error):
        kernel.append_record(target, -1, *arguments)
    assert target == b"before"


@given(records, st.integers(0, 3), st.booleans(), st.integers(-1, 400))
def test_records_appended_together_are_those_appended_one_by_one(
    listed: list[Record], begin: int, with_keys: bool, limit: int
) -> None:
    values = [entry.value for entry in listed]
    keys = [entry.key for entry in listed] if with_keys else None
    headers = listed[0].headers
    for kernel in (load_kernel("compiled"), load_kernel("python")):
        one_by_one = bytearray(b"before")
        count = 0
        for index in range(begin, len(values)):
            key = None if keys is None else keys[index]
            if not kernel.append_record(one_by_one, limit, 7 + count, 3, key, values[index], headers):
                break
            count += 1
        together = bytearray(b"before")
        assert kernel.append_records(together, limit, 7, 3, keys, values, begin, headers) == count
        assert together == one_by_one


@pytest.mark.parametrize("values", [[b"a", "text"], [b"a", 7], [b"a", *[b"b"] * 3]])
def test_records_that_cannot_all_be_written_leave_no_trace(kernel: ModuleType, values: list[Any]) -> None:
    target = bytearray(b"before")
    with pytest.raises((TypeError, ValueError)):
        kernel.append_records(target, -1, 2**31 - 3, 0, None, values, 0, ())
    assert target == b"before"


def test_keys_and_values_may_be_any_bytes(kernel: ModuleType) -> None:
    target = bytearray()
    kernel.append_record(target, -1, 0, 0, bytearray(b"key"), memoryview(b"-value-")[1:-1], [("h", bytearray(b"x"))])
    assert kernel.decode_payload(target, 1, 0, 0, 0, None) == [Record(0, 0, b"key", b"value", (("h", b"x"),))]


# --- batch heads


def test_the_batch_that_holds_an_offset_is_found_by_its_head_alone(kernel: ModuleType) -> None:
    first, second, third = plain(3, base_offset=100), plain(5, base_offset=103), plain(1, base_offset=120)
    log = bytes(first + second + third)
    at_second, at_third = len(first), len(first) + len(second)
    assert kernel.find_batch(log, 0, 0) == (0, 100, 102, len(first))
    assert kernel.find_batch(log, 0, 103) == (at_second, 103, 107, len(second))
    assert kernel.find_batch(log, 0, 107) == (at_second, 103, 107, len(second))
    assert kernel.find_batch(log, 0, 108) == (at_third, 120, 120, len(third))  # compaction left a hole
    assert kernel.find_batch(log, at_second, 0) == (at_second, 103, 107, len(second))
    assert kernel.find_batch(log, 0, 121) == (len(log), -1, -1, 0)
    head_of_second = log[: at_second + 27]
    assert kernel.find_batch(head_of_second, 0, 105) == (at_second, 103, 107, len(second))
    assert kernel.find_batch(head_of_second, 0, 108) == (at_third, -1, -1, 0)  # go on there, beyond the buffer
    assert kernel.find_batch(head_of_second[:-1], 0, 105) == (at_second, -1, -1, 0)
    assert kernel.find_batch(b"", 0, 0) == (0, -1, -1, 0)


def test_messages_of_the_old_formats_are_skipped_by_their_offset(kernel: ModuleType) -> None:
    def message(offset: int, magic: int) -> bytes:
        return struct.pack(">qiIbb", offset, 14 + 10, 0, magic, 0) + struct.pack(">ii", -1, 10) + bytes(10)

    log = message(7, 0) + message(8, 1) + bytes(plain(1, base_offset=9))
    assert kernel.find_batch(log, 0, 8) == (36, 8, 8, 36)
    assert kernel.find_batch(log, 0, 9)[0] == 72
    assert kernel.find_batch(log[:17], 0, 7) == (0, 7, 7, 36)


@pytest.mark.parametrize(
    ("position", "damage"),
    [
        (8, struct.pack(">i", 48)),
        (8, struct.pack(">i", -1)),
        (8, bytes(4)),
        (16, b"\x03"),
        (16, b"\xff"),
        (0, b"\xff"),
        (23, b"\xff"),
        (0, b"\x7f" + b"\xff" * 7),
    ],
)
def test_an_impossible_head_is_corrupt(kernel: ModuleType, position: int, damage: bytes) -> None:
    log = plain(1) + plain(3, base_offset=1)
    start = len(plain(1))
    log[start + position : start + position + len(damage)] = damage
    with pytest.raises(CorruptRecordError, match=f"position {start}"):
        kernel.find_batch(log, 0, 3)


def test_a_negative_position_is_refused(kernel: ModuleType) -> None:
    with pytest.raises(ValueError, match="position -1 is negative"):
        kernel.find_batch(plain(1), -1, 0)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
        (b"", 275646681),
    ],
)
def test_murmur2_is_that_of_java_clients(kernel: ModuleType, key: bytes, expected: int) -> None:
    assert kernel.murmur2(key) == expected
    assert kernel.murmur2(memoryview(bytearray(key))) == expected


# --- the twins


def outcome(function: Any, *arguments: Any) -> Any:
    """What the function returns, or the kind, index and text of what it raises; anything but a DecodeError escapes."""
    try:
        return function(*arguments)
    except (InvalidRecordError, CorruptRecordError) as error:
        return type(error), getattr(error, "index", None), str(error)


mutations = st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255), st.sampled_from("=+-")), max_size=4)


def mutate(data: bytes, changes: list[tuple[int, int, str]]) -> bytes:
    """Overwrites, inserts or removes single bytes."""
    changed = bytearray(data)
    for position, byte, how in changes:
        at = position % (len(changed) + 1)
        if how == "+":
            changed.insert(at, byte)
        elif at < len(changed):
            if how == "=":
                changed[at] = byte
            else:
                del changed[at]
    return bytes(changed)


@settings(max_examples=400)
@given(records, mutations, st.integers(-1, 2), st.sampled_from([TIMESTAMP, -1, 2**63 - 1, -(2**63)]), st.booleans())
def test_the_twins_agree_on_damaged_records(
    listed: list[Record], changes: list[tuple[int, int, str]], miscount: int, base_timestamp: int, contiguous: bool
) -> None:
    compiled, python = load_kernel("compiled"), load_kernel("python")
    payload = mutate(payload_of(build(listed)), changes)
    count = len(listed) + (0 if miscount == 2 else miscount)
    for name, arguments in (
        ("check_payload", (payload, count, count - 1, base_timestamp, contiguous)),
        ("decode_payload", (payload, count, 5, count - 1, base_timestamp, None)),
        ("decode_fetched", (payload, count, 5, count - 1, base_timestamp, None, ConsumerRecord, "t", 3, 0)),
        ("find_timestamp", (payload, count, count - 1, base_timestamp, listed[-1].timestamp)),
    ):
        assert outcome(getattr(compiled, name), *arguments) == outcome(getattr(python, name), *arguments)


@settings(max_examples=400)
@given(st.binary(max_size=300), st.integers(-2, 40), st.booleans())
def test_the_twins_agree_on_random_bytes(data: bytes, count: int, contiguous: bool) -> None:
    compiled, python = load_kernel("compiled"), load_kernel("python")
    for name, arguments in (
        ("check_payload", (data, count, count - 1, 0, contiguous)),
        ("decode_payload", (data, count, 0, 100, 0, None)),
        ("decode_fetched", (data, count, 0, 100, 0, None, ConsumerRecord, "t", 3, 0)),
        ("find_timestamp", (data, count, 100, 0, 3)),
        ("find_batch", (data, 0, 3)),
        ("murmur2", (data,)),
    ):
        assert outcome(getattr(compiled, name), *arguments) == outcome(getattr(python, name), *arguments)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), mutations, st.integers(0, 30), st.integers(0, 200))
def test_the_twins_agree_on_damaged_batch_heads(
    sizes: list[int], changes: list[tuple[int, int, str]], target: int, position: int
) -> None:
    compiled, python = load_kernel("compiled"), load_kernel("python")
    log, offset = bytearray(), 0
    for size in sizes:
        log += plain(size, base_offset=offset)
        offset += size
    data = mutate(bytes(log), changes)
    assert outcome(compiled.find_batch, data, position, target) == outcome(python.find_batch, data, position, target)


def test_the_environment_selects_the_kernel() -> None:
    code = "from barnabas.protocol.records import KERNEL; print(KERNEL)"
    answers = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "BARNABAS_KERNEL": wanted},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        for wanted in ("python", "fortran")
    ]
    assert answers[0].stdout == "python\n"
    assert "neither compiled nor python" in answers[1].stderr
