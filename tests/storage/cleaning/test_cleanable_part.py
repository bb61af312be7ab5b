"""The cleanable part of a log, and when the log is due."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.broker.storage.cleaning.cleanable_part import CleanablePart, measure_cleanable_part
from barnabas.broker.storage.log.partition_log import PartitionLog
from tests.support.storage.bench import START_MS, LogBench, append, keyed_batch, log_config


def _filled(bench: LogBench, count: int, **changes: Any) -> PartitionLog:
    """Write `count` batches of 100 bytes, a second apart, ten per segment."""
    log = bench.open(log_config(**{"segment_bytes": 1024, "compact": True, "delete": False, **changes}))
    for number in range(count):
        append(log, keyed_batch(100, START_MS + number * 1000))
    return log


def _part(log: PartitionLog, checkpoint: int | None = None, now_ms: int = START_MS) -> CleanablePart:
    return measure_cleanable_part(log, checkpoint, now_ms)


def _range(part: CleanablePart) -> tuple[int, int]:
    return part.first_dirty_offset, part.first_uncleanable_offset


def test_without_a_checkpoint_all_but_the_active_segment_is_dirty(bench: LogBench) -> None:
    part = _part(_filled(bench, 25))
    assert _range(part) == (0, 20)
    assert (part.clean_bytes, part.dirty_bytes, part.dirty_ratio, part.is_reset) == (0, 2000, 1.0, False)


def test_a_log_of_one_segment_has_nothing_to_clean_and_no_ratio(bench: LogBench) -> None:
    part = _part(_filled(bench, 5))
    assert (_range(part), part.total_bytes, part.dirty_ratio) == ((0, 0), 0, 0.0)
    assert not part.is_due(0.0)


def test_records_below_the_checkpoint_are_clean(bench: LogBench) -> None:
    part = _part(_filled(bench, 45), 30)
    assert (_range(part), part.clean_bytes, part.dirty_bytes, part.dirty_ratio) == ((30, 40), 3000, 1000, 0.25)
    assert not part.is_due(0.25)
    assert part.is_due(0.249)


def test_a_checkpoint_inside_a_segment_makes_that_segment_both_clean_and_dirty(bench: LogBench) -> None:
    part = _part(_filled(bench, 45), 35)
    assert (_range(part), part.clean_bytes, part.dirty_bytes) == ((35, 40), 4000, 1000)


def test_a_checkpoint_in_the_active_segment_leaves_nothing_dirty(bench: LogBench) -> None:
    part = _part(_filled(bench, 45), 43)
    assert (part.first_dirty_offset, part.dirty_bytes, part.dirty_ratio) == (43, 0, 0.0)


@pytest.mark.parametrize(("checkpoint", "is_reset"), [(9, True), (10, False), (45, False), (46, True)])
def test_a_checkpoint_outside_of_the_log_is_reset_to_its_start(
    bench: LogBench, checkpoint: int, is_reset: bool
) -> None:
    log = _filled(bench, 45)
    log.delete_records(10)
    part = _part(log, checkpoint)
    assert part.is_reset is is_reset
    assert part.first_dirty_offset == (10 if is_reset else checkpoint)


def test_a_log_that_starts_inside_a_segment_is_dirty_from_there(bench: LogBench) -> None:
    log = _filled(bench, 45)
    log.delete_records(15)
    assert _range(_part(log)) == (15, 40)


def test_the_segment_with_the_last_stable_offset_is_not_cleanable(bench: LogBench) -> None:
    log = _filled(bench, 35)
    log.core.first_unstable_offset = 15  # as with an open transaction
    assert log.last_stable_offset == 15
    assert _range(_part(log)) == (0, 10)


def test_the_first_segment_with_a_young_record_and_all_above_are_not_cleanable(bench: LogBench) -> None:
    log = _filled(bench, 45, min_compaction_lag_ms=10_000)
    # The third segment's largest timestamp is START_MS + 29 s: with a lag of 10 s it is young until START_MS + 39 s.
    assert _range(_part(log, now_ms=START_MS + 38_999)) == (0, 20)
    assert _range(_part(log, now_ms=START_MS + 39_000)) == (0, 30)


def test_a_young_record_in_the_clean_part_does_not_matter(bench: LogBench) -> None:
    log = _filled(bench, 45, min_compaction_lag_ms=1)
    assert _range(_part(log, 30, now_ms=START_MS + 20_000)) == (30, 30)
    assert _range(_part(log, 30, now_ms=START_MS + 50_000)) == (30, 40)


def test_the_oldest_dirty_record_makes_a_log_due_strictly_after_max_compaction_lag(bench: LogBench) -> None:
    log = _filled(bench, 45, max_compaction_lag_ms=60_000)
    # First dirty segment is 30..39, whose first batch is of START_MS + 30 s.
    assert _part(log, 30, now_ms=START_MS + 90_000).delay_ms == 0
    part = _part(log, 30, now_ms=START_MS + 90_001)
    assert part.delay_ms == 1
    assert part.is_due(1.0)


def test_an_old_record_in_the_active_segment_does_not_make_the_log_due(bench: LogBench) -> None:
    log = _filled(bench, 45, max_compaction_lag_ms=60_000)
    part = _part(log, 40, now_ms=START_MS + 1_000_000)
    assert (part.delay_ms, part.dirty_bytes) == (0, 0)
    assert not part.is_due(0.0)
