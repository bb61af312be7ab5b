"""Predictions of retention, each against what a log then does under a driven clock; one test for each reason."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from barnabas.broker.storage.explanation.retention_facts import LogFacts, SegmentFacts, read_log_facts
from barnabas.broker.storage.explanation.retention_findings import KeptBy, SegmentFinding, explain_retention
from barnabas.broker.storage.log.partition_log import PartitionLog
from tests.support.storage.bench import START_MS, LogBench, append, log_config, sized_batch

_CHECK_MS = 300_000
_MINUTE = 60_000


def _filled(bench: LogBench, timestamps: list[int], **changes: object) -> PartitionLog:
    """One batch of 100 bytes for each timestamp, ten to a segment; the clock is at the end at START_MS + 1 minute."""
    config = log_config(**{"segment_bytes": 1024, "retention_ms": -1, **changes})
    log = bench.open(replace(config, compact=False))  # a compacted topic takes no records without keys
    for timestamp in timestamps:
        append(log, sized_batch(100, timestamp))
    log.update_config(config)
    bench.clock.now_ms = START_MS + _MINUTE
    return log


def _steps(count: int) -> list[int]:
    return [START_MS + number * 1000 for number in range(count)]


def _explain(bench: LogBench, log: PartitionLog) -> tuple[SegmentFinding, ...]:
    return explain_retention(read_log_facts(log, _CHECK_MS), now_ms=bench.clock.now_ms)


def _reasons(findings: tuple[SegmentFinding, ...]) -> list[tuple[KeptBy, ...]]:
    return [finding.kept_by for finding in findings]


def _deletions(bench: LogBench, log: PartitionLog, until_ms: int, first_check_ms: int) -> dict[int, int]:
    """Run the periodic check; return base offset -> moment of the deletion."""
    gone: dict[int, int] = {}
    bench.clock.now_ms = first_check_ms
    while bench.clock.now_ms <= until_ms:
        before = {segment.base_offset for segment in log.segments if segment.size_bytes}
        log.delete_old_segments()
        left = {segment.base_offset for segment in log.segments}
        gone.update(dict.fromkeys(before - left, bench.clock.now_ms))
        bench.clock.now_ms += _CHECK_MS
    return gone


@pytest.mark.parametrize("seed", range(20))
def test_each_segment_goes_within_the_predicted_moments_and_no_other_one_goes(bench: LogBench, seed: int) -> None:
    draw = random.Random(seed)
    stamps = [START_MS + draw.randrange(-20 * _MINUTE, 40 * _MINUTE) for _ in range(draw.randrange(1, 70))]
    log = _filled(
        bench,
        stamps,
        retention_ms=draw.choice([-1, 0, 10 * _MINUTE, 30 * _MINUTE]),
        retention_bytes=draw.choice([-1, -1, 0, 1500, 3000]),
        compact=draw.random() < 0.2,
        delete=draw.random() < 0.8,
    )
    log.delete_records(draw.randrange(len(stamps)) if draw.random() < 0.4 else 0)
    findings = _explain(bench, log)
    gone = _deletions(bench, log, START_MS + 200 * _MINUTE, bench.clock.now_ms + draw.randrange(_CHECK_MS))
    predicted = {each.segment.base_offset: each for each in findings if each.deleted_earliest_ms is not None}
    assert gone.keys() == predicted.keys()
    for base_offset, moment in gone.items():
        earliest, latest = predicted[base_offset].deleted_earliest_ms, predicted[base_offset].deleted_latest_ms
        assert earliest is not None
        assert latest is not None
        assert earliest <= moment <= latest


def test_the_predicted_moment_is_the_first_millisecond(bench: LogBench) -> None:
    log = _filled(bench, _steps(25), retention_ms=10 * _MINUTE)
    finding = _explain(bench, log)[0]
    assert (finding.rule, finding.deleted_earliest_ms) == ("retention.ms", START_MS + 9000 + 10 * _MINUTE + 1)
    bench.clock.now_ms = START_MS + 9000 + 10 * _MINUTE
    assert log.delete_old_segments() == 0
    bench.clock.now_ms += 1
    assert log.delete_old_segments() == 1


def test_a_timestamp_in_the_future_holds_everything_behind_it(bench: LogBench) -> None:
    stamps = _steps(35)
    stamps[3] = START_MS + 86_400_000
    findings = _explain(bench, _filled(bench, stamps, retention_ms=1000))
    future, *behind = findings
    assert future.kept_by == (KeptBy.FUTURE_TIMESTAMP,)
    assert [each.held_by for each in findings] == [None, 0, 0, 0]
    assert {each.kept_by for each in behind} == {(KeptBy.EARLIER_SEGMENT,)}
    assert {each.deleted_earliest_ms for each in findings} == {START_MS + 86_400_000 + 1001}


def test_a_compact_only_topic_keeps_all_but_what_is_below_the_start_offset(bench: LogBench) -> None:
    log = _filled(bench, _steps(25), retention_ms=0, compact=True, delete=False)
    log.delete_records(12)
    first, second, active = _explain(bench, log)
    assert (first.rule, first.kept_by) == ("log.start.offset", (KeptBy.CHECK_INTERVAL,))
    assert (second.deleted_earliest_ms, second.rule, second.kept_by) == (None, None, (KeptBy.COMPACT_ONLY,))
    assert active.kept_by == (KeptBy.ACTIVE_SEGMENT, KeptBy.COMPACT_ONLY)


def test_a_log_with_a_stored_config_that_is_not_understood_loses_only_what_is_below_the_start_offset(
    bench: LogBench,
) -> None:
    kept = {"unread": ("segment.ms",), "understood": (False, True), "delete": False}
    log = _filled(bench, _steps(25), retention_ms=0, **kept)
    log.delete_records(12)
    first, second, active = _explain(bench, log)
    assert (first.rule, first.kept_by) == ("log.start.offset", (KeptBy.CHECK_INTERVAL,))
    assert (second.deleted_earliest_ms, second.kept_by) == (None, (KeptBy.UNREAD_CONFIG,))
    assert active.kept_by == (KeptBy.ACTIVE_SEGMENT, KeptBy.UNREAD_CONFIG)
    assert log.delete_old_segments() == 1


def test_an_active_segment_that_does_not_roll_keeps_records_older_than_retention(bench: LogBench) -> None:
    log = _filled(bench, [START_MS - 25 * _MINUTE, START_MS], retention_ms=10 * _MINUTE)
    (active,) = _explain(bench, log)
    assert active.kept_by == (KeptBy.ACTIVE_SEGMENT, KeptBy.WITHIN_RETENTION, KeptBy.ROLL_NOT_DUE)
    log.update_config(log_config(segment_ms=_MINUTE, retention_ms=10 * _MINUTE))
    assert _explain(bench, log)[0].kept_by == (KeptBy.ACTIVE_SEGMENT, KeptBy.WITHIN_RETENTION)


def test_an_empty_active_segment_stays(bench: LogBench) -> None:
    (empty,) = _explain(bench, bench.open(log_config(retention_ms=0)))
    assert (empty.kept_by, empty.deleted_earliest_ms) == ((KeptBy.ACTIVE_SEGMENT,), None)


def test_without_limits_nothing_goes(bench: LogBench) -> None:
    findings = _explain(bench, _filled(bench, _steps(15)))
    assert _reasons(findings) == [(KeptBy.NO_LIMIT,), (KeptBy.ACTIVE_SEGMENT, KeptBy.NO_LIMIT)]


def test_what_may_go_now_waits_for_the_check(bench: LogBench) -> None:
    first, active = _explain(bench, _filled(bench, _steps(15), retention_bytes=500))
    assert (first.rule, first.kept_by) == ("retention.bytes", (KeptBy.CHECK_INTERVAL,))
    assert (first.deleted_earliest_ms, first.deleted_latest_ms) == (
        bench.clock.now_ms,
        bench.clock.now_ms + _CHECK_MS,
    )
    assert active.kept_by == (KeptBy.ACTIVE_SEGMENT, KeptBy.NO_LIMIT)


def test_records_above_the_high_watermark_stay_and_hold_what_follows(bench: LogBench) -> None:
    log = _filled(bench, _steps(25), retention_ms=1000)
    facts = read_log_facts(log, _CHECK_MS)
    held = LogFacts(True, facts.config, 0, 15, _CHECK_MS, facts.segments)
    findings = explain_retention(held, now_ms=bench.clock.now_ms)
    above = (KeptBy.ABOVE_HIGH_WATERMARK,)
    assert _reasons(findings) == [(KeptBy.CHECK_INTERVAL,), above, above]
    assert [each.deleted_earliest_ms for each in findings] == [bench.clock.now_ms, None, None]


def test_an_offline_directory_and_a_disabled_cleaner_keep_everything(bench: LogBench) -> None:
    log = _filled(bench, _steps(15), retention_ms=0)
    facts = read_log_facts(log, None)
    assert set(_reasons(explain_retention(facts, now_ms=bench.clock.now_ms))) == {(KeptBy.CLEANER_DISABLED,)}
    log.go_offline()
    assert set(_reasons(_explain(bench, log))) == {(KeptBy.OFFLINE_DIRECTORY,)}


def test_a_later_blocker_is_named_instead_of_an_earlier_one() -> None:
    def segment(base: int, largest: int) -> SegmentFacts:
        return SegmentFacts(base, base + 10, 100, largest, largest, None)

    config = log_config(retention_ms=10)
    facts = LogFacts(True, config, 0, 40, 5, tuple(map(segment, (0, 10, 20, 30), (50, 40, 70, 60))))
    findings = explain_retention(facts, now_ms=45)
    assert [each.held_by for each in findings] == [None, 0, None, 20]
    assert [each.deleted_earliest_ms for each in findings] == [61, 61, 81, 81]
