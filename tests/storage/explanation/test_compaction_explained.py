"""Why the cleaner does not clean a log now, by log, cleaner and configuration: a case for each reason."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.broker.storage.cleaning.cleaner_facts import CleanerFacts
from barnabas.broker.storage.explanation.compaction import WaitsFor, explain_compaction
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.protocol.messages.topics.explain_topic import ExplainedCompaction
from tests.support.storage.bench import START_MS, LogBench, append, keyed_batch, log_config

IDLE = CleanerFacts(
    is_enabled=True,
    checkpoint=None,
    state="idle",
    error=None,
    filthier_logs=0,
    bytes_per_second=None,
    kept_share=None,
)


def filled(bench: LogBench, count: int, **changes: Any) -> PartitionLog:
    """Write `count` batches of 100 bytes, a second apart, ten per segment."""
    log = bench.open(log_config(**{"segment_bytes": 1024, "compact": True, "delete": False, **changes}))
    for number in range(count):
        append(log, keyed_batch(100, START_MS + number * 1000))
    return log


def explain(log: PartitionLog, *, now_ms: int = START_MS + 100_000, **facts: Any) -> ExplainedCompaction:
    found = explain_compaction(log, IDLE._replace(**facts), now_ms)
    assert found is not None
    return found


def test_a_log_that_is_not_compacted_has_none(bench: LogBench) -> None:
    assert explain_compaction(filled(bench, 25, compact=False), IDLE, START_MS) is None


@pytest.mark.parametrize(
    ("facts", "reasons"),
    [
        ({}, [WaitsFor.NEXT_LOOK]),
        ({"filthier_logs": 2}, [WaitsFor.OTHER_LOGS]),
        ({"is_enabled": False}, [WaitsFor.CLEANER_DISABLED]),
        ({"error": "a round failed"}, [WaitsFor.UNCLEANABLE]),
        ({"state": "in progress"}, [WaitsFor.IN_PROGRESS]),
        ({"state": "in progress", "is_throttled": True}, [WaitsFor.IN_PROGRESS, WaitsFor.THROTTLED]),
        ({"is_throttled": True}, [WaitsFor.NEXT_LOOK, WaitsFor.THROTTLED]),
        ({"filthier_logs": 1, "is_throttled": True}, [WaitsFor.OTHER_LOGS, WaitsFor.THROTTLED]),
        ({"is_postponed": True, "filthier_logs": 2}, [WaitsFor.POSTPONED]),
        ({"checkpoint": 45, "is_throttled": True}, [WaitsFor.NOTHING_DIRTY]),
        ({"state": "paused"}, [WaitsFor.PAUSED]),
        ({"checkpoint": 30}, [WaitsFor.DIRTY_RATIO, WaitsFor.ACTIVE_SEGMENT]),
        ({"checkpoint": 40}, [WaitsFor.ACTIVE_SEGMENT]),
        ({"checkpoint": 45}, [WaitsFor.NOTHING_DIRTY]),
    ],
)
def test_each_state_of_the_cleaner_and_of_the_log_has_its_reason(
    bench: LogBench, facts: dict[str, Any], reasons: list[WaitsFor]
) -> None:
    found = explain(filled(bench, 45), **facts)
    assert list(found.waits_for) == reasons
    assert found.error == facts.get("error")


def test_the_missing_dirty_bytes_make_it_due(bench: LogBench) -> None:
    log = filled(bench, 45)  # 3,000 clean bytes and 1,000 dirty ones of 4 segments; the ratio is 0.5
    missing = explain(log, checkpoint=30).missing_bytes
    assert missing == 2001
    for number in range(45, 65):  # 2,000 bytes become dirty: not enough
        append(log, keyed_batch(100, START_MS + number * 1000))
    assert WaitsFor.DIRTY_RATIO in explain(log, checkpoint=30).waits_for
    for number in range(65, 75):
        append(log, keyed_batch(100, START_MS + number * 1000))
    found = explain(log, checkpoint=30)
    assert (found.waits_for, found.missing_bytes) == ((WaitsFor.NEXT_LOOK,), 0)


def test_a_ratio_that_nothing_exceeds_is_named(bench: LogBench) -> None:
    found = explain(filled(bench, 45, min_cleanable_dirty_ratio=1.0))
    assert (found.missing_bytes, found.waits_for[0]) == (None, WaitsFor.DIRTY_RATIO)


def test_young_records_wait_for_min_compaction_lag(bench: LogBench) -> None:
    log = filled(bench, 25, min_compaction_lag_ms=50_000)
    young = explain(log, now_ms=START_MS + 40_000)
    assert list(young.waits_for) == [WaitsFor.MIN_COMPACTION_LAG, WaitsFor.ACTIVE_SEGMENT]
    assert (young.dirty_bytes, young.first_uncleanable_offset) == (0, 0)
    assert list(explain(log, now_ms=START_MS + 70_000).waits_for) == [WaitsFor.NEXT_LOOK]


def test_max_compaction_lag_makes_it_due_at_the_moment_that_was_said(bench: LogBench) -> None:
    log = filled(bench, 45, max_compaction_lag_ms=3_600_000, segment_ms=1 << 62)
    found = explain(log, checkpoint=30)
    assert found.due_latest_ms == START_MS + 30_000 + 3_600_000 + 1
    assert WaitsFor.DIRTY_RATIO in explain(log, checkpoint=30, now_ms=found.due_latest_ms - 1).waits_for
    due = explain(log, checkpoint=30, now_ms=found.due_latest_ms)
    assert (due.waits_for, due.due_latest_ms) == ((WaitsFor.NEXT_LOOK,), found.due_latest_ms)
    assert explain(filled(bench, 0), checkpoint=30).due_latest_ms is None


def test_earlier_rounds_tell_what_the_next_one_takes_and_frees(bench: LogBench) -> None:
    found = explain(filled(bench, 45), bytes_per_second=1000.0, kept_share=0.25)
    assert (found.seconds, found.freed_bytes) == (4.0, 3000)
    assert explain(filled(bench, 0)).seconds is None
