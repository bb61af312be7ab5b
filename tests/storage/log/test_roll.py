"""The roll: when a log begins a new segment, and the files of the sealed one."""

from __future__ import annotations

import os
import struct

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from barnabas.broker.storage.log.append import AppendOrigin
from barnabas.broker.storage.log.roller import FLUSH_LOG_TASK
from barnabas.broker.storage.segment.log_segment import MAX_RELATIVE_OFFSET
from barnabas.config.log_config import LogConfig
from tests.support.storage.bench import START_MS, LogBench, append, batch, log_config, sized_batch

_STEP_MS = 5000


def _fill(bench: LogBench, config: LogConfig, count: int) -> list[int]:
    """The known example: records of 148 (the first) and then 150 bytes, every 5 s; the base offsets of the segments."""
    log = bench.open(config)
    for number in range(count):
        append(log, sized_batch(150 if number else 148, START_MS + number * _STEP_MS))
    return [segment.base_offset for segment in log.segments]


def test_150_byte_records_in_16384_byte_segments_give_109_records_and_three_index_entries(bench: LogBench) -> None:
    assert _fill(bench, log_config(segment_bytes=16384), 250) == [0, 109, 218]
    assert bench.offset_entries(0) == [(28, 4198), (56, 8398), (84, 12598)]
    assert bench.time_entries(0) == [(START_MS + offset * _STEP_MS, offset) for offset in (28, 56, 84, 108)]
    assert os.path.getsize(bench.log_path(0)) == 148 + 108 * 150
    assert os.path.getsize(bench.path(0, ".index")) == 24
    assert os.path.getsize(bench.path(0, ".timeindex")) == 48


_Segment = tuple[int, list[tuple[int, int]], list[tuple[int, int]]]


def _model(batches: list[tuple[int, int]], interval: int, index_bytes: int, segment_bytes: int) -> list[_Segment]:
    """Kafka's rule, written independently of the broker's, for batches of (size, timestamp).

    Per segment its base, its index entries, and its time entries, the active one's without the closing entry.
    """
    segments: list[_Segment] = [(0, [], [])]
    size = since = 0
    largest, largest_at = -1, 0
    for offset, (batch_size, timestamp) in enumerate(batches):
        base, entries, times = segments[-1]
        full = len(entries) >= index_bytes // 8 or len(times) >= index_bytes // 12 - 1
        if size and (size + batch_size > segment_bytes or full):
            if largest > (times[-1][0] if times else -1):
                times.append((largest, largest_at - base))
            base, entries, times = offset, [], []
            segments.append((base, entries, times))
            size = since = 0
            largest = -1
        if timestamp > largest:
            largest, largest_at = timestamp, offset
        if since > interval:
            entries.append((offset - base, size))
            if largest > (times[-1][0] if times else -1):
                times.append((largest, largest_at - base))
            since = 0
        size += batch_size
        since += batch_size
    return segments


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    batches=st.lists(
        st.tuples(st.integers(80, 400).filter(lambda size: size != 126), st.sampled_from([-1, 1, 2, 3, 4])),
        min_size=1,
        max_size=120,
    ),
    rising=st.booleans(),
    interval=st.sampled_from([0, 1, 150, 500, 1024, 4096]),
    index_bytes=st.integers(24, 200),
    segment_bytes=st.integers(1024, 20000),
)
@example(batches=[(100, 0)] * 20, rising=True, interval=0, index_bytes=24, segment_bytes=20000)  # the time index fills
@example(batches=[(100, 0)] * 60, rising=True, interval=0, index_bytes=24 * 12, segment_bytes=20000)
@example(batches=[(100, 7)] * 60, rising=False, interval=0, index_bytes=24, segment_bytes=20000)  # the offset index
@example(batches=[(100, -1)] * 60, rising=False, interval=0, index_bytes=31, segment_bytes=20000)  # no timestamps
def test_index_entries_and_rolls_follow_the_rule_whichever_index_fills_first(
    bench: LogBench,
    batches: list[tuple[int, int]],
    rising: bool,
    interval: int,
    index_bytes: int,
    segment_bytes: int,
) -> None:
    for path in bench.directory.iterdir():
        path.unlink()
    bench.recovery_point = 0
    config = log_config(segment_bytes=segment_bytes, index_interval_bytes=interval, segment_index_bytes=index_bytes)
    log = bench.open(config)
    if rising:  # each offset entry gets a time entry, so the time index fills first; otherwise the offset index may
        batches = [(size, START_MS + number) for number, (size, _) in enumerate(batches)]
    for size, timestamp in batches:
        append(log, sized_batch(size, timestamp))
    expected = _model(batches, interval, index_bytes, segment_bytes)
    assert [segment.base_offset for segment in log.segments] == [base for base, _, _ in expected]
    for base, entries, times in expected:
        assert bench.offset_entries(base) == entries
        assert bench.time_entries(base) == times
    bench.crash(log)
    bench.recovery_point = 0
    recovered = bench.open(config, clean=False)  # the compiled scan has the rule too
    assert [segment.base_offset for segment in recovered.segments] == [base for base, _, _ in expected]
    for base, entries, times in expected[:-1]:
        assert (bench.offset_entries(base), bench.time_entries(base)) == (entries, times)
    assert bench.offset_entries(expected[-1][0]) == expected[-1][1]
    recovered.go_offline()


def test_a_segment_rolls_when_a_batch_is_later_than_segment_ms_after_its_first(bench: LogBench) -> None:
    log = bench.open(log_config(segment_ms=1000))
    append(log, sized_batch(100, START_MS))
    append(log, sized_batch(100, START_MS + 1000))
    assert log.segment_count == 1
    append(log, sized_batch(100, START_MS + 1001))
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_an_idle_segment_never_rolls_by_time(bench: LogBench) -> None:
    log = bench.open(log_config(segment_ms=1000))
    append(log, sized_batch(100, START_MS))
    bench.clock.now_ms += 10**9
    append(log, sized_batch(100, START_MS + 1))
    assert log.segment_count == 1


def test_without_timestamps_a_segment_rolls_by_the_wall_clock_since_it_was_opened(bench: LogBench) -> None:
    config = log_config(segment_ms=1000)
    log = bench.open(config)
    append(log, sized_batch(100, -1))
    bench.clock.now_ms += 900
    bench.close(log)
    log = bench.open(config)
    bench.clock.now_ms += 1000
    append(log, sized_batch(100, -1))
    assert log.segment_count == 1
    bench.clock.now_ms += 1
    append(log, sized_batch(100, -1))
    assert log.segment_count == 2


def test_the_first_batch_counts_for_the_roll_time_after_a_reload(bench: LogBench) -> None:
    config = log_config(segment_ms=1000)
    log = bench.open(config)
    append(log, sized_batch(100, START_MS))
    append(log, sized_batch(100, START_MS + 900))
    bench.close(log)
    log = bench.open(config)
    append(log, sized_batch(100, START_MS + 1001))
    assert log.segment_count == 2


def test_jitter_lets_a_segment_roll_earlier_and_is_drawn_once(bench: LogBench, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []

    def draw(limit: int) -> int:
        drawn.append(limit)
        return 300

    monkeypatch.setattr("random.randrange", draw)
    log = bench.open(log_config(segment_ms=1000, segment_jitter_ms=5000))
    for number in range(3):
        append(log, sized_batch(100, START_MS + 350 * number))
    assert drawn == [1000]
    append(log, sized_batch(100, START_MS + 701))
    assert log.segment_count == 2


def test_a_compacted_log_rolls_after_max_compaction_lag(bench: LogBench) -> None:
    log = bench.open(log_config(segment_ms=10**6, compact=True, max_compaction_lag_ms=1000))
    append(log, batch((START_MS, b"k", b"v")))
    append(log, batch((START_MS + 1001, b"k", b"v")))
    assert log.segment_count == 2


def test_a_changed_segment_ms_applies_to_the_active_segment(bench: LogBench) -> None:
    log = bench.open(log_config(segment_ms=10**6))
    append(log, sized_batch(100, START_MS))
    log.update_config(log_config(segment_ms=1000))
    append(log, sized_batch(100, START_MS + 1001))
    assert log.segment_count == 2


def test_offsets_beyond_what_an_index_can_hold_begin_a_new_segment(bench: LogBench) -> None:
    log = bench.open()
    append(log, sized_batch(100))
    # A compacted log may have far fewer records than offsets; no batch can hold 2^31 of them.
    log.core.log_end_offset = MAX_RELATIVE_OFFSET
    append(log, sized_batch(100))
    assert log.segment_count == 1
    log.core.log_end_offset = MAX_RELATIVE_OFFSET + 1
    append(log, sized_batch(100))
    assert [segment.base_offset for segment in log.segments] == [0, MAX_RELATIVE_OFFSET + 1]


def test_a_roll_is_made_durable_in_the_background_and_moves_the_recovery_point(bench: LogBench) -> None:
    log = bench.open(log_config(segment_bytes=1024))
    for _ in range(12):
        append(log, sized_batch(100))
    assert [segment.base_offset for segment in log.segments] == [0, 10]
    assert log.recovery_point == 0
    assert bench.scheduler.pending() == [FLUSH_LOG_TASK]
    bench.scheduler.run_due()
    assert log.recovery_point == 10


def test_a_roll_writes_a_producer_snapshot_of_10_bytes_at_the_new_base(bench: LogBench) -> None:
    log = bench.open(log_config(segment_bytes=1024))
    for _ in range(11):
        append(log, sized_batch(100))
    assert bench.path(10, ".snapshot").read_bytes() == bytes.fromhex("0001") + struct.pack(">I", 0x48674BC7) + bytes(4)
    assert not bench.path(0, ".snapshot").exists()


def test_index_files_of_a_new_segment_are_created_with_its_first_batch(bench: LogBench) -> None:
    log = bench.open()
    append(log, sized_batch(100))
    log.roll()
    assert not bench.path(1, ".index").exists()
    assert not bench.path(1, ".timeindex").exists()
    append(log, sized_batch(100))
    assert os.path.getsize(bench.path(1, ".index")) == 10485760
    assert os.path.getsize(bench.path(1, ".timeindex")) == 10485756


def test_rolling_an_empty_segment_does_nothing(bench: LogBench) -> None:
    log = bench.open()
    log.roll()
    assert log.segment_count == 1


def test_a_preallocated_segment_has_its_full_size_until_it_is_rolled(bench: LogBench) -> None:
    log = bench.open(log_config(segment_bytes=4096, preallocate=True))
    append(log, sized_batch(100))
    log.roll()
    append(log, sized_batch(100))
    assert os.path.getsize(bench.log_path(0)) == 100
    assert os.path.getsize(bench.log_path(1)) == 4096
    log.close()
    assert os.path.getsize(bench.log_path(1)) == 100


def test_leftover_files_at_the_new_base_are_deleted_first(bench: LogBench) -> None:
    log = bench.open()
    append(log, sized_batch(100))
    for suffix in (".log", ".index", ".timeindex"):
        bench.path(1, suffix).write_bytes(b"\1" * 48)
    log.roll()
    append(log, sized_batch(100))
    assert bench.log_path(1).stat().st_size == 100
    assert bench.offset_entries(1) == []


def test_a_batch_that_fills_the_segment_to_the_last_byte_does_not_roll(bench: LogBench) -> None:
    log = bench.open(log_config(segment_bytes=1024))
    append(log, sized_batch(512))
    append(log, sized_batch(512))
    assert (log.segment_count, log.size_bytes) == (1, 1024)
    append(log, sized_batch(80))
    assert log.segment_count == 2


def test_batches_of_a_trusted_origin_roll_by_the_same_rules(bench: LogBench) -> None:
    log = bench.open(log_config(segment_ms=1000, segment_bytes=1024))
    for timestamp, size in ((START_MS, 300), (START_MS + 1000, 300), (START_MS + 1001, 300), (START_MS, 800)):
        log.append_as_leader(sized_batch(size, timestamp), leader_epoch=0, origin=AppendOrigin.RAFT)
    assert [segment.base_offset for segment in log.segments] == [0, 2, 3]
