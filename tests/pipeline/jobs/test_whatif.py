"""The job whatif, compared with the broker's own retention and cleaner."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from barnabas.broker.storage.cleaning.cleaner_config import CleanerConfig
from barnabas.broker.storage.cleaning.offline import compact_log, offline_cleaner
from barnabas.broker.storage.log.retention import RetentionRule, deletable_segments
from barnabas.broker.storage.segment.log_segments import SegmentsView
from barnabas.config.broker_config import BrokerConfig
from barnabas.pipeline.jobs.whatif import (
    TopicPolicy,
    cleanable_parts,
    compaction_effect,
    freed_by_topic,
    freed_over_time,
    policies_frame,
    retention_effect,
)
from barnabas.pipeline.jobs.whatif_report import WhatIfOptions, run, whatif_page
from barnabas.pipeline.segments.facts import SEGMENT_SCHEMA, segment_facts
from barnabas.pipeline.segments.log_files import find_logs
from tests.support.spark.frames import Stored, records_frame
from tests.support.storage.bench import START_MS, LogBench, append, batch, log_config

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOW_MS = START_MS
HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Segment:
    """The part of LogSegment that retention uses."""

    base_offset: int
    size_bytes: int
    timestamp: int

    def largest_timestamp(self) -> int:
        return self.timestamp


def facts_frame(spark: SparkSession, logs: dict[str, list[Segment]]) -> DataFrame:
    rows = [
        ("/d", f"/d/{topic}-0", topic, 0, segment.base_offset, segment.size_bytes, segment.timestamp, is_active, None)
        for topic, segments in logs.items()
        for segment, is_active in zip(segments, [False] * (len(segments) - 1) + [True], strict=True)
    ]
    return spark.createDataFrame(rows, SEGMENT_SCHEMA)


def policy(topic: str, **changes: Any) -> TopicPolicy:
    return TopicPolicy.of(topic, log_config(**{"retention_ms": -1, "retention_bytes": -1, **changes}))


def freed_of(frame: DataFrame) -> dict[str, list[tuple[int, str]]]:
    freed: dict[str, list[tuple[int, str]]] = {}
    for row in frame.where("freed_by is not null").orderBy("topic", "base_offset").collect():
        freed.setdefault(row["topic"], []).append((row["base_offset"], row["freed_by"]))
    return freed


def test_retention_frees_the_segments_that_the_broker_would_delete(spark: SparkSession) -> None:
    chosen = random.Random(4)
    logs: dict[str, list[Segment]] = {}
    policies = []
    due: dict[str, list[tuple[int, str]]] = {}
    for number in range(120):
        topic = f"t{number}"
        count = chosen.randrange(1, 7)
        segments = [
            Segment(n * 10, chosen.choice([100, 250, 1000]), NOW_MS - chosen.randrange(-1, 6) * HOUR_MS)
            for n in range(count)
        ]
        if chosen.random() < 0.2:
            segments[-1] = replace(segments[-1], size_bytes=0)
        changes: dict[str, Any] = {
            "retention_ms": chosen.choice([-1, 0, 2 * HOUR_MS, 3 * HOUR_MS - 1, 2**63 - 1]),
            "retention_bytes": chosen.choice([-1, 0, 100, 350, 1000, 2**62]),
            "delete": chosen.random() < 0.8,
            "compact": chosen.random() < 0.5,
        }
        logs[topic] = segments
        policies.append(policy(topic, **changes))
        config = log_config(**changes)
        view = SegmentsView(tuple(s.base_offset for s in segments), cast(Any, tuple(segments)))
        rules = {"retention.bytes": RetentionRule.SIZE, "retention.ms": RetentionRule.TIME} if config.delete else {}
        end = count * 10
        for name, rule in rules.items():
            gone = deletable_segments(
                rule, view, config, log_start_offset=0, high_watermark=end, log_end_offset=end, now_ms=NOW_MS
            )
            for segment in gone[len(due.get(topic, [])) :]:
                due.setdefault(topic, []).append((segment.base_offset, name))

    found = freed_of(retention_effect(facts_frame(spark, logs), policies_frame(spark, policies), NOW_MS))

    assert found == due
    assert {rule for listed in due.values() for _, rule in listed} == {"retention.bytes", "retention.ms"}


def test_a_topic_without_a_policy_is_left_out_and_bytes_add_up_by_topic(spark: SparkSession) -> None:
    old, young = NOW_MS - 5 * HOUR_MS, NOW_MS
    logs = {
        "both": [Segment(0, 500, old), Segment(1, 300, old), Segment(2, 200, young)],
        "other": [Segment(0, 100, old)],
    }
    effects = retention_effect(
        facts_frame(spark, logs),
        policies_frame(spark, [policy("both", retention_bytes=450, retention_ms=HOUR_MS)]),
        NOW_MS,
    )

    rows = [row.asDict() for row in freed_by_topic(effects).collect()]

    assert rows == [
        {
            "topic": "both",
            "segments": 3,
            "size_bytes": 1000,
            "freed_segments": 2,
            "freed_by_size": 500,
            "freed_by_time": 300,
        }
    ]


def test_a_segment_waits_for_the_younger_one_before_it(spark: SparkSession) -> None:
    logs = {"orders": [Segment(0, 10, NOW_MS), Segment(1, 20, NOW_MS - 9 * HOUR_MS), Segment(2, 40, NOW_MS + HOUR_MS)]}
    effects = retention_effect(
        facts_frame(spark, logs), policies_frame(spark, [policy("orders", retention_ms=2 * HOUR_MS)]), NOW_MS
    )

    steps = {row["step"]: row["freed_bytes"] for row in freed_over_time(effects, NOW_MS, HOUR_MS, 3).collect()}

    assert freed_of(effects) == {}
    assert steps == {3: 30}  # deleted one millisecond after two hours; the last segment in the fourth hour


def test_compaction_drops_the_records_that_a_round_of_the_cleaner_drops(spark: SparkSession, tmp_path: Path) -> None:
    chosen = random.Random(8)
    config = log_config(compact=True, delete=False, min_cleanable_dirty_ratio=0.01)
    bench = LogBench(tmp_path)
    log = bench.open(config)
    stored: list[Stored] = []
    for _ in range(6):
        for _ in range(40):
            records = [
                (START_MS, b"k%d" % chosen.randrange(60), chosen.choice([None, bytes(chosen.randrange(1, 200))]))
                for _ in range(5)
            ]
            base = append(log, batch(*records))
            stored += [Stored(base + n, key, value) for n, (_, key, value) in enumerate(records)]
        log.roll()
    append(log, batch((START_MS, b"k1", b"in the active segment")))
    stored.append(Stored(len(stored), b"k1", b"in the active segment"))
    bench.close(log)
    segments = segment_facts(spark, find_logs([tmp_path]))
    policies = policies_frame(spark, [TopicPolicy.of("orders", config)])

    effects = retention_effect(segments, policies, NOW_MS)
    parts = cleanable_parts(effects, policies, NOW_MS)
    (told,) = compaction_effect(records_frame(spark, stored), parts).collect()
    log = bench.open(config)
    done = compact_log(
        log, None, offline_cleaner(CleanerConfig.of(BrokerConfig.of()), lambda _: None), now_ms=NOW_MS, max_rounds=1
    )
    bench.close(log)

    assert told["records_gone"] == done.records_gone > 500
    assert told["records"] == 1200
    assert told["bytes_gone"] == pytest.approx(done.bytes_gone, rel=0.15)
    assert told["is_due"]
    assert told["tombstones"] == len({s.key for s in stored[:1200]}) - len(
        {key for key, value in {s.key: s.value for s in stored[:1200]}.items() if value is not None}
    )


def test_young_segments_and_what_retention_frees_are_no_work_for_the_cleaner(spark: SparkSession) -> None:
    logs = {
        "orders": [
            Segment(0, 100, NOW_MS - 9 * HOUR_MS),
            Segment(10, 200, NOW_MS - 3 * HOUR_MS),
            Segment(20, 400, NOW_MS - 1),
            Segment(30, 800, NOW_MS - 3 * HOUR_MS),
            Segment(40, 1600, NOW_MS),
        ]
    }
    policies = policies_frame(
        spark, [policy("orders", compact=True, retention_ms=5 * HOUR_MS, min_compaction_lag_ms=HOUR_MS)]
    )
    effects = retention_effect(facts_frame(spark, logs), policies, NOW_MS)

    (part,) = cleanable_parts(effects, policies, NOW_MS).collect()

    assert (part["first_offset"], part["first_uncleanable"]) == (10, 20)
    assert (part["cleanable_bytes"], part["dirty_bytes"]) == (200, 200)


def test_records_without_a_key_go_and_a_log_with_nothing_to_clean_is_told_with_zeros(spark: SparkSession) -> None:
    logs = {"orders": [Segment(0, 1000, NOW_MS), Segment(4, 500, NOW_MS)], "one": [Segment(0, 70, NOW_MS)]}
    policies = policies_frame(spark, [policy(topic, compact=True) for topic in logs])
    effects = retention_effect(facts_frame(spark, logs), policies, NOW_MS)
    records = records_frame(
        spark, [Stored(0, None, b"x" * 18), Stored(1, b"a" * 9, b"y" * 9), Stored(4, b"a" * 9, b"z")]
    )

    rows = {r["topic"]: r for r in compaction_effect(records, cleanable_parts(effects, policies, NOW_MS)).collect()}

    assert (rows["orders"]["records_gone"], rows["orders"]["bytes_gone"]) == (1, 500)
    assert (rows["one"]["records"], rows["one"]["bytes_gone"], rows["one"]["is_due"]) == (0, 0, False)


def test_the_job_tells_retention_and_compaction_of_a_directory_by_topic(spark: SparkSession, tmp_path: Path) -> None:
    bench = LogBench(tmp_path)
    log = bench.open()
    for segment in range(3):
        for _ in range(4):
            append(log, batch(*((START_MS + segment * HOUR_MS, b"k%d" % n, bytes(100)) for n in range(5))))
        log.roll()
    bench.close(log)
    sizes = [bench.log_path(base).stat().st_size for base in (0, 20, 40)]
    policies = [policy("orders", compact=True, retention_ms=3 * HOUR_MS)]
    options = WhatIfOptions(find_logs([tmp_path]), policies, "retention.ms=10800000", START_MS + 3 * HOUR_MS + 1, 0.125)

    report = run(spark, options)

    (told,) = report.topics
    assert (told.size_bytes, told.segments) == (sum(sizes), 4)
    assert (told.freed_by_time, told.freed_by_size, told.freed_segments) == (sizes[0], 0, 1)
    assert (told.records_gone, told.is_due, told.tombstones) == (35, True, 0)
    assert told.freed_by_compaction == pytest.approx(35 / 40 * (sizes[1] + sizes[2]), rel=0.02)
    assert told.left_bytes == told.size_bytes - told.freed_by_time - told.freed_by_compaction
    assert sum(report.freed.values()) == sum(sizes)  # the other two expire within three hours
    assert report.freed["orders", 0] == sizes[0]
    assert report.summary().details["bytes_left"] == told.left_bytes
    assert "retention.ms=<wbr>10800000" in whatif_page(report)
