"""Offsets by timestamp: latest, earliest, maximum, and any time."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.broker.storage.log.lookup import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, MAX_TIMESTAMP, FoundOffset
from barnabas.protocol.compression import Codec
from tests.support.storage.bench import START_MS, LogBench, append, batch, log_config, sized_batch


def _at(*timestamps: int, codec: Codec = Codec.NONE) -> memoryview:
    return batch(*[(timestamp, b"k", b"v") for timestamp in timestamps], codec=codec)


def test_an_empty_log_has_its_ends_and_nothing_between(bench: LogBench) -> None:
    log = bench.open()
    assert log.offset_for_timestamp(LATEST_TIMESTAMP) == FoundOffset(-1, 0, -1)
    assert log.offset_for_timestamp(EARLIEST_TIMESTAMP) == FoundOffset(-1, 0, -1)
    assert log.offset_for_timestamp(MAX_TIMESTAMP) is None
    assert log.offset_for_timestamp(START_MS) is None


def test_latest_is_the_bound_and_earliest_the_log_start(bench: LogBench) -> None:
    log = bench.open()
    append(log, _at(1, 2, 3), leader_epoch=2)
    append(log, _at(4, 5, 6), leader_epoch=6)
    log.delete_records(2)
    assert log.offset_for_timestamp(LATEST_TIMESTAMP) == FoundOffset(-1, 6, 6)
    assert log.offset_for_timestamp(LATEST_TIMESTAMP, upper_bound=4) == FoundOffset(-1, 4, 6)
    assert log.offset_for_timestamp(EARLIEST_TIMESTAMP) == FoundOffset(-1, 2, 2)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.SNAPPY])
def test_a_timestamp_finds_the_first_record_at_or_after_it(bench: LogBench, codec: Codec) -> None:
    log = bench.open()
    append(log, _at(100, 200, codec=codec), leader_epoch=1)
    append(log, _at(300, 250, 400, codec=codec), leader_epoch=2)
    assert log.offset_for_timestamp(0) == FoundOffset(100, 0, 1)
    assert log.offset_for_timestamp(101) == FoundOffset(200, 1, 1)
    assert log.offset_for_timestamp(201) == FoundOffset(300, 2, 2)
    assert log.offset_for_timestamp(301) == FoundOffset(400, 4, 2)
    assert log.offset_for_timestamp(401) is None


def test_an_empty_segment_between_others_does_not_end_a_lookup(bench: LogBench) -> None:
    log = bench.open()
    append(log, _at(100))
    log.roll()
    append(log, _at(200))
    log.roll()
    append(log, _at(300), leader_epoch=1)
    log.go_offline()
    os.truncate(bench.log_path(1), 0)

    log = bench.open(clean=False)

    assert [segment.size_bytes > 0 for segment in log.segments] == [True, False, True]
    assert log.offset_for_timestamp(150) == FoundOffset(300, 2, 1)


def test_the_maximum_timestamp_finds_the_first_record_that_has_it(bench: LogBench) -> None:
    log = bench.open(log_config(segment_bytes=1024))
    append(log, _at(100, 900, 900), leader_epoch=1)
    append(log, _at(900), leader_epoch=2)
    for _ in range(12):
        append(log, sized_batch(100, 500), leader_epoch=2)
    append(log, _at(900), leader_epoch=2)
    assert log.segment_count > 1
    assert log.offset_for_max_timestamp() == FoundOffset(900, 1, 1)


def test_lookups_below_the_log_start_return_the_first_remaining_record(bench: LogBench) -> None:
    log = bench.open()
    append(log, _at(100, 200, 300))
    append(log, _at(400, 500))
    log.delete_records(1)
    assert log.offset_for_timestamp(0) == FoundOffset(200, 1, 0)
    log.delete_records(3)
    assert log.offset_for_timestamp(0) == FoundOffset(400, 3, 0)


def test_a_record_at_or_above_the_bound_is_not_found(bench: LogBench) -> None:
    log = bench.open()
    append(log, _at(100, 200))
    append(log, _at(300))
    assert log.offset_for_timestamp(300, upper_bound=2) is None
    assert log.offset_for_timestamp(200, upper_bound=2) == FoundOffset(200, 1, 0)


def test_under_log_append_time_the_first_record_of_the_batch_is_found(bench: LogBench) -> None:
    log = bench.open(log_config(timestamp_type="LogAppendTime"))
    for step in range(3):
        bench.clock.now_ms = START_MS + step
        append(log, _at(1, 2, 3))
    assert log.offset_for_timestamp(START_MS + 1) == FoundOffset(START_MS + 1, 3, 0)
    assert log.offset_for_max_timestamp() == FoundOffset(START_MS + 2, 6, 0)


def test_without_timestamps_only_the_largest_one_is_found_and_that_is_none(bench: LogBench) -> None:
    log = bench.open()
    append(log, _at(-1, -1))
    append(log, _at(-1, codec=Codec.GZIP))
    os.utime(bench.log_path(), (START_MS / 1000, START_MS / 1000))
    assert log.offset_for_timestamp(0) is None
    assert log.offset_for_max_timestamp() == FoundOffset(-1, 0, 0)


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    batches=st.lists(st.lists(st.integers(0, 300), min_size=1, max_size=4), min_size=1, max_size=40),
    interval=st.sampled_from([0, 200, 4096]),
    reload=st.sampled_from(["no", "clean", "unclean"]),
    start=st.integers(0, 30),
)
def test_every_lookup_equals_a_search_through_the_whole_log(
    bench: LogBench, batches: list[list[int]], interval: int, reload: str, start: int
) -> None:
    for path in bench.directory.iterdir():
        path.unlink()
    bench.recovery_point = bench.log_start_offset = 0
    config = log_config(segment_bytes=1024, index_interval_bytes=interval)
    log = bench.open(config)
    timestamps = [timestamp for each in batches for timestamp in each]
    for each in batches:
        append(log, _at(*each))
    if reload == "clean":
        bench.close(log)
        log = bench.open(config)
    elif reload == "unclean":
        bench.crash(log)
        log = bench.open(config, clean=False)
    log.delete_records(min(start, len(timestamps)))
    for target in range(302):
        expected = next(
            (
                (timestamp, offset)
                for offset, timestamp in enumerate(timestamps)
                if timestamp >= target and offset >= log.log_start_offset
            ),
            None,
        )
        found = log.offset_for_timestamp(target)
        if found is None and expected is not None:
            # Kafka's rule: the first segment with a late enough timestamp decides, even if that record was deleted.
            segments = log.segments
            decisive = next(each for each in segments if each.largest_timestamp() >= target)
            assert decisive.base_offset <= log.log_start_offset
            continue
        assert (None if found is None else (found.timestamp, found.offset)) == expected
    top = max(timestamps)
    found = log.offset_for_max_timestamp()
    assert found is not None
    assert (found.timestamp, found.offset) == (top, timestamps.index(top))
