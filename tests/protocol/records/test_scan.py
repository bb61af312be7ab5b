"""The scan that recovery goes by: what it finds, where it stops, and that both of its implementations are the same."""

from __future__ import annotations

import os
import struct
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from barnabas.protocol.crc32c import crc32c
from barnabas.protocol.records.kernels.scanned import ProducerBatch, ScanFault
from barnabas.protocol.records.layout import CONTROL_MASK, LOG_OVERHEAD, TRANSACTIONAL_MASK
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.storage.kernels import SCANS, load_kernel
from tests.support.storage.records import stored

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1


@pytest.fixture(params=sorted(SCANS))
def scan(request: pytest.FixtureRequest) -> ModuleType:
    return load_kernel(request.param, SCANS)


def fed(module: ModuleType, data: bytes, base_offset: int = 0, **options: Any) -> Any:
    found = module.BatchScan(base_offset, **options)
    found.feed(data, len(data))
    return found


def entries(data: bytes, form: str) -> list[tuple[int, ...]]:
    return list(struct.iter_unpack(form, data))


def test_index_entries_follow_the_rule_of_an_append(scan: ModuleType) -> None:
    """The known example: 148 and then 150 bytes every 5 s, index.interval.bytes of 4096."""
    data = stored(0, 148, timestamp=0) + b"".join(stored(n, 150, timestamp=5000 * n) for n in range(1, 109))
    found = fed(scan, data, index_interval_bytes=4096, max_offset_entries=100, max_time_entries=100)
    assert entries(found.offset_entries, ">ii") == [(28, 4198), (56, 8398), (84, 12598)]
    assert entries(found.time_entries, ">qi") == [(28 * 5000, 28), (56 * 5000, 56), (84 * 5000, 84)]
    assert (found.max_timestamp, found.max_timestamp_offset, found.first_timestamp) == (108 * 5000, 108, 0)
    assert (found.position, found.next_offset, found.fault) == (len(data), 109, None)


def test_a_time_entry_is_the_largest_timestamp_so_far_and_only_if_it_has_grown(scan: ModuleType) -> None:
    times = [5, 9, 9, 3, 10]
    data = b"".join(stored(2 * n, delta=1, timestamp=time) for n, time in enumerate(times))
    found = fed(scan, data, index_interval_bytes=0, max_offset_entries=100, max_time_entries=100)
    assert entries(found.offset_entries, ">ii") == [(3, 100), (5, 200), (7, 300), (9, 400)]
    assert entries(found.time_entries, ">qi") == [(9, 3), (10, 9)]


@pytest.mark.parametrize(
    ("offset_slots", "time_slots", "expected"), [(2, 100, (2, 2)), (100, 3, (2, 2)), (0, 0, (0, 0))]
)
def test_no_entry_is_found_beyond_what_an_index_can_hold(
    scan: ModuleType, offset_slots: int, time_slots: int, expected: tuple[int, int]
) -> None:
    data = b"".join(stored(n, timestamp=n) for n in range(9))
    found = fed(scan, data, max_offset_entries=offset_slots, max_time_entries=time_slots)
    assert (len(found.offset_entries) // 8, len(found.time_entries) // 12) == expected
    assert found.next_offset == 9


def test_offsets_and_positions_are_those_of_the_segment(scan: ModuleType) -> None:
    base = 2**40
    data = stored(base + 4) + stored(base + 9, delta=3, timestamp=7)
    found = fed(scan, data, base, max_offset_entries=9, max_time_entries=9)
    assert entries(found.offset_entries, ">ii") == [(12, 100)]
    assert entries(found.time_entries, ">qi") == [(7, 12)]
    assert found.next_offset == base + 13


def test_each_higher_leader_epoch_is_found_at_its_first_offset(scan: ModuleType) -> None:
    data = b"".join(stored(n, epoch=epoch) for n, epoch in enumerate([-1, 3, 3, 2, 5]))
    assert fed(scan, data).epochs == [(3, 1), (5, 4)]
    assert fed(scan, data, latest_epoch=4).epochs == [(5, 4)]


def test_only_batches_with_a_producer_id_are_collected(scan: ModuleType) -> None:
    data = (
        stored(0)
        + stored(1, delta=4, producer_id=0, producer_epoch=7, sequence=11, timestamp=9, attributes=TRANSACTIONAL_MASK)
        + stored(6, 120, producer_id=INT64_MAX, producer_epoch=-1, attributes=CONTROL_MASK | TRANSACTIONAL_MASK)
        + stored(7, producer_id=-1, sequence=5)
    )
    found = fed(scan, data)
    expected = [
        ProducerBatch(100, 100, 0, 7, 11, 5, 4, 9, 1, True, False),
        ProducerBatch(200, 120, INT64_MAX, -1, 0, 6, 0, -1, 1, True, True),
    ]
    assert found.producer_batch_count == 2
    assert found.take_producer_batches() == expected
    assert found.take_producer_batches() == []
    assert fed(scan, data, producers_from=6).take_producer_batches() == expected[1:]


_GOOD = stored(0) + stored(1)


@pytest.mark.parametrize(
    ("tail", "fault"),
    [
        (b"\0", ScanFault.TORN),
        (stored(2)[:16], ScanFault.TORN),
        (stored(2)[:60], ScanFault.TORN),
        (stored(2)[:-1], ScanFault.TORN),
        (stored(2)[:8] + struct.pack(">i", INT32_MAX) + stored(2)[12:], ScanFault.TORN),
        (bytes(4000), ScanFault.OLD_FORMAT),
        (stored(2)[:16] + b"\1" + stored(2)[17:], ScanFault.OLD_FORMAT),
        (stored(2)[:16] + b"\3" + stored(2)[17:], ScanFault.BAD_HEADER),
        (b"\xff" * 500, ScanFault.BAD_HEADER),
        (stored(2)[:8] + struct.pack(">i", 48) + stored(2)[12:], ScanFault.BAD_HEADER),
        (stored(2)[:8] + struct.pack(">i", -13) + stored(2)[12:], ScanFault.BAD_HEADER),
        (stored(-1), ScanFault.BAD_HEADER),
        (stored(2, delta=-1), ScanFault.BAD_HEADER),
        (stored(INT64_MAX - 5, delta=5), ScanFault.BAD_HEADER),
        (stored(2)[:-1] + b"\0", ScanFault.BAD_CRC),
        (stored(2)[:17] + bytes(4) + stored(2)[21:], ScanFault.BAD_CRC),
        (stored(1), ScanFault.BAD_OFFSETS),
        (stored(0, delta=5), ScanFault.BAD_OFFSETS),
        (stored(INT32_MAX + 1), ScanFault.OVERFLOW),
        (stored(5, delta=INT32_MAX), ScanFault.OVERFLOW),
    ],
)
def test_a_scan_stops_at_the_first_damaged_batch(scan: ModuleType, tail: bytes, fault: ScanFault) -> None:
    found = fed(scan, _GOOD + tail + stored(9)) if fault is not ScanFault.TORN else fed(scan, _GOOD + tail)
    assert (found.fault, found.position, found.next_offset) == (fault, 200, 2)


def test_a_last_offset_at_the_edge_of_an_index_does_not_overflow(scan: ModuleType) -> None:
    assert fed(scan, _GOOD + stored(INT32_MAX)).fault is None


def test_a_batch_that_ends_beyond_2_gib_is_an_overflow(scan: ModuleType) -> None:
    near = scan.BatchScan(0, position=INT32_MAX - 250)
    near.feed(_GOOD + stored(2), 300)
    assert (near.fault, near.position, near.next_offset) == (ScanFault.OVERFLOW, INT32_MAX - 50, 2)


def test_without_the_crc_check_a_damaged_record_is_passed(scan: ModuleType) -> None:
    assert fed(scan, _GOOD + stored(2)[:-1] + b"\0", check_crc=False).next_offset == 3


def test_a_batch_larger_than_the_buffer_sets_needed_bytes(scan: ModuleType) -> None:
    data = stored(0) + stored(1, 5000)
    found = scan.BatchScan(0)
    found.feed(data[:1000], len(data))
    assert (found.fault, found.position, found.needed_bytes) == (None, 100, 5000)
    found.feed(data[100:], len(data) - 100)
    assert (found.fault, found.position, found.needed_bytes) == (None, 5100, 0)


def test_a_batch_that_the_caller_checked_is_passed_and_the_scan_goes_on(scan: ModuleType) -> None:
    """As with a message of an old format, which the scan itself does not read."""
    message = b"\0" * 16 + b"\1" + b"\0" * 33
    found = fed(scan, _GOOD + message + stored(9), max_offset_entries=9, max_time_entries=9)
    assert (found.fault, found.position) == (ScanFault.OLD_FORMAT, 200)
    found.pass_batch(50, 2, 8, 77)
    assert (found.fault, found.position, found.next_offset, found.max_timestamp) == (None, 250, 9, 77)
    found.feed(stored(9), 100)
    assert entries(found.offset_entries, ">ii") == [(1, 100), (8, 200), (9, 250)]
    found.pass_batch(50, 3, 3, 77)
    assert (found.fault, found.position) == (ScanFault.BAD_OFFSETS, 350)


class _Spec(NamedTuple):
    size: int
    gap: int
    delta: int
    timestamp: int
    epoch: int
    producer_id: int
    attributes: int


_specs = st.lists(
    st.builds(
        _Spec,
        size=st.integers(61, 200),
        gap=st.sampled_from([0, 0, 0, 1, 2**20]),
        delta=st.sampled_from([0, 0, 3, 1000]),
        timestamp=st.integers(-1, 20),
        epoch=st.integers(-1, 3),
        producer_id=st.integers(-1, 3),
        attributes=st.sampled_from([0, 0, 0, TRANSACTIONAL_MASK, TRANSACTIONAL_MASK | CONTROL_MASK]),
    ),
    max_size=40,
)


def _written(specs: list[_Spec]) -> bytes:
    data, offset = b"", 0
    for number, (size, gap, delta, timestamp, epoch, producer_id, attributes) in enumerate(specs):
        data += stored(
            offset + gap,
            size,
            delta=delta,
            timestamp=timestamp,
            epoch=epoch,
            producer_id=producer_id,
            sequence=number,
            attributes=attributes,
        )
        offset += gap + delta + 1
    return data


def _scanned(module: ModuleType, data: bytes, piece: int, options: dict[str, Any]) -> tuple[Any, ...]:
    """All that a scan found, feeding it pieces as a reader with a buffer of that size does."""
    found = module.BatchScan(0, **options)
    batches = []
    while found.fault is None and found.position < len(data):
        size = max(piece, found.needed_bytes)
        found.feed(data[found.position : found.position + size], len(data) - found.position)
        batches.append(found.take_producer_batches())
    names = ("position", "next_offset", "fault", "needed_bytes", "first_timestamp", "max_timestamp")
    more = ("max_timestamp_offset", "offset_entries", "time_entries", "epochs", "producer_batch_count")
    return (*(getattr(found, name) for name in names + more), batches)


@settings(deadline=None, max_examples=150)
@given(
    specs=_specs,
    damage=st.none() | st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)),
    piece=st.integers(61, 3000),
    interval=st.sampled_from([0, 61, 150, 1000]),
    slots=st.tuples(st.integers(0, 12), st.integers(0, 12)),
    check_crc=st.booleans(),
)
@example(specs=[], damage=None, piece=61, interval=0, slots=(1, 1), check_crc=True)
def test_both_scans_agree_on_valid_and_damaged_bytes(
    specs: list[_Spec],
    damage: tuple[float, int] | None,
    piece: int,
    interval: int,
    slots: tuple[int, int],
    check_crc: bool,
) -> None:
    data = bytearray(_written(specs))
    if damage is not None and data:
        data[int(damage[0] * len(data))] ^= damage[1]
    options = {
        "index_interval_bytes": interval,
        "max_offset_entries": slots[0],
        "max_time_entries": slots[1],
        "check_crc": check_crc,
    }
    results = [_scanned(load_kernel(name, SCANS), bytes(data), piece, options) for name in sorted(SCANS)]
    assert results[0] == results[1]


@settings(deadline=None, max_examples=200)
@given(data=st.binary(max_size=400), piece=st.integers(61, 500))
def test_any_bytes_end_a_scan_without_an_error(data: bytes, piece: int) -> None:
    results = [_scanned(load_kernel(name, SCANS), data, piece, {}) for name in sorted(SCANS)]
    assert results[0] == results[1]
    assert results[0][0] <= len(data)


@settings(deadline=None, max_examples=60)
@given(specs=_specs, producers=st.integers(0, 3))
def test_superseded_batches_make_no_difference_to_producer_state(
    tmp_path_factory: pytest.TempPathFactory, specs: list[_Spec], producers: int
) -> None:
    from barnabas.broker.storage.producers.expiration import ProducerExpiration
    from barnabas.broker.storage.producers.state import ProducerState
    from barnabas.protocol.records.end_marker import EndMarker

    specs = [spec._replace(producer_id=min(spec.producer_id, producers)) for spec in specs * 4]
    data = _written([spec._replace(gap=0) for spec in specs])
    directory = tmp_path_factory.getbasetemp()

    def state_after(batches: list[ProducerBatch]) -> object:
        state = ProducerState(TopicPartition("t", 0), directory, ProducerExpiration(2**40))
        marker, rows = EndMarker(is_commit=False, coordinator_epoch=0), []
        for batch in batches:
            if batch.is_control:
                rows.append(state.aborted_by(batch.producer_id, marker, batch.last_offset))
                state.note_marker(batch.producer_id, batch.producer_epoch, marker, batch.max_timestamp)
            else:
                state.note_batch(*batch[2:8], is_transactional=batch.is_transactional)
        entries = [
            (entry.producer_id, entry.epoch, entry.last_timestamp, entry.txn_first_offset, entry.batches)
            for entry in state.producers.values()
        ]
        return entries, state.first_unstable_offset, rows

    for name in sorted(SCANS):
        module = load_kernel(name, SCANS)
        every = []
        one_by_one = module.BatchScan(0)
        while one_by_one.position < len(data):
            at = one_by_one.position
            size = struct.unpack_from(">i", data, at + 8)[0] + LOG_OVERHEAD
            one_by_one.feed(data[at : at + size], len(data) - at)
            every += one_by_one.take_producer_batches()
        found = fed(module, data)
        assert state_after(found.take_producer_batches()) == state_after(every)


@pytest.mark.parametrize("by_tables", [False, True])
def test_the_compiled_crc_is_that_of_the_package_with_and_without_the_instruction(by_tables: bool) -> None:
    compiled = load_kernel("compiled", SCANS)
    sizes = [*range(70), 255, 256, 767, 768, 769, 775, 12287, 12288, 12289, 12295, 40000, 100001]
    for size in sizes:
        for shift in (0, 1, 5):
            data = memoryview(os.urandom(size + shift))[shift:]
            assert compiled.crc32c(data, by_tables=by_tables) == crc32c(data)
