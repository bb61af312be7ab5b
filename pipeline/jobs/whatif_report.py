"""Results of the job whatif for data directories, by topic, and their page."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from barnabas.pipeline.jobs.record_source import RecordSource
from barnabas.pipeline.jobs.summary import Summary
from barnabas.pipeline.jobs.whatif import (
    TopicPolicy,
    cleanable_parts,
    compaction_effect,
    freed_by_topic,
    freed_over_time,
    policies_frame,
    retention_effect,
)
from barnabas.pipeline.report.charts import Chart, bytes_text
from barnabas.pipeline.report.page import Section, Table, render_page
from barnabas.pipeline.segments.facts import segment_facts
from barnabas.pipeline.segments.log_files import StoredLog

STEPS = 30
CHARTED_TOPICS = 7
_DAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class WhatIfOptions:
    """`policies` cover all topics of `logs`; `settings` describes them. `days` is the range of the forecast."""

    logs: Sequence[StoredLog]
    policies: Sequence[TopicPolicy]
    settings: str
    now_ms: int
    days: float = 30


class TopicEffect(NamedTuple):
    """The effect on one topic, in bytes on disk and in records."""

    topic: str
    segments: int
    size_bytes: int
    freed_segments: int
    freed_by_size: int
    freed_by_time: int
    freed_by_compaction: int
    """Estimated, after one cleaning; see `is_due`."""
    records_gone: int
    tombstones: int
    tombstone_bytes: int
    """Estimated; removed delete.retention.ms after the cleaning."""
    is_due: bool
    """Whether a partition is above min.cleanable.dirty.ratio, so that the cleaner would run immediately."""

    @property
    def left_bytes(self) -> int:
        """Bytes that remain."""
        return self.size_bytes - self.freed_by_size - self.freed_by_time - self.freed_by_compaction


@dataclass(frozen=True, slots=True)
class WhatIfReport:
    """Effects by topic, the largest first; `freed` has (topic, step) -> bytes freed in that step of the forecast."""

    settings: str
    now_ms: int
    days: float
    seconds: float
    topics: Sequence[TopicEffect]
    freed: dict[tuple[str, int], int]

    def summary(self) -> Summary:
        """Summarize the report; `size_bytes` are the bytes that would be freed now."""
        freed = sum(topic.size_bytes - topic.left_bytes for topic in self.topics)
        return Summary(
            job="whatif",
            records=sum(topic.records_gone for topic in self.topics),
            size_bytes=freed,
            files=sum(topic.freed_segments for topic in self.topics),
            seconds=self.seconds,
            details={
                "bytes_now": sum(topic.size_bytes for topic in self.topics),
                "bytes_left": sum(topic.left_bytes for topic in self.topics),
                "freed_by_retention_bytes": sum(topic.freed_by_size for topic in self.topics),
                "freed_by_retention_ms": sum(topic.freed_by_time for topic in self.topics),
                "freed_by_compaction": sum(topic.freed_by_compaction for topic in self.topics),
                "settings": self.settings,
            },
        )


def run(spark: SparkSession, options: WhatIfOptions) -> WhatIfReport:
    """Evaluate the policies by segment sizes and time indexes; only records of compacted topics are read."""
    began = time.monotonic()
    policies = policies_frame(spark, options.policies)
    effects = retention_effect(segment_facts(spark, options.logs), policies, options.now_ms).cache()
    try:
        retained = {row["topic"]: row.asDict() for row in freed_by_topic(effects).collect()}
        step_ms = max(round(options.days * _DAY_MS / STEPS), 1)
        steps = freed_over_time(effects, options.now_ms, step_ms, STEPS).collect()
        compacted = _compaction(spark, options, effects, policies)
    finally:
        effects.unpersist()
    topics = [
        TopicEffect(
            topic=topic,
            segments=row["segments"],
            size_bytes=row["size_bytes"],
            freed_segments=row["freed_segments"],
            freed_by_size=row["freed_by_size"],
            freed_by_time=row["freed_by_time"],
            freed_by_compaction=compacted.get(topic, {}).get("bytes_gone", 0),
            records_gone=compacted.get(topic, {}).get("records_gone", 0),
            tombstones=compacted.get(topic, {}).get("tombstones", 0),
            tombstone_bytes=compacted.get(topic, {}).get("tombstone_bytes", 0),
            is_due=compacted.get(topic, {}).get("is_due", False),
        )
        for topic, row in retained.items()
    ]
    return WhatIfReport(
        settings=options.settings,
        now_ms=options.now_ms,
        days=options.days,
        seconds=time.monotonic() - began,
        topics=sorted(topics, key=lambda effect: (-effect.size_bytes, effect.topic)),
        freed={(row["topic"], row["step"]): row["freed_bytes"] for row in steps},
    )


def _compaction(
    spark: SparkSession, options: WhatIfOptions, effects: DataFrame, policies: DataFrame
) -> dict[str, dict[str, Any]]:
    """Estimate compaction by topic. Without a compacting policy the result is empty and no record is read."""
    topics = tuple(policy.topic for policy in options.policies if policy.is_compact)
    if not topics:
        return {}
    log_dirs = tuple(Path(log_dir) for log_dir in sorted({log.log_dir for log in options.logs}))
    source = RecordSource(log_dirs=log_dirs, topics=topics)
    records = source.read(spark, ("topic", "partition", "offset", "key", "value"))
    found: dict[str, dict[str, Any]] = {}
    for row in compaction_effect(records, cleanable_parts(effects, policies, options.now_ms)).collect():
        topic = found.setdefault(row["topic"], {"is_due": False})
        topic["is_due"] = topic["is_due"] or row["is_due"]
        for name in ("bytes_gone", "records_gone", "tombstones", "tombstone_bytes"):
            topic[name] = topic.get(name, 0) + row[name]
    return found


def whatif_page(report: WhatIfReport) -> str:
    """Render the report as HTML."""
    total = report.summary()
    facts = {
        "settings": report.settings,
        "as of": f"{datetime.fromtimestamp(report.now_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC",
        "would be freed now": bytes_text(total.size_bytes),
        "of": bytes_text(sum(topic.size_bytes for topic in report.topics)),
    }
    rows = [
        (
            topic.topic,
            topic.segments,
            topic.size_bytes,
            topic.freed_by_size,
            topic.freed_by_time,
            topic.freed_by_compaction,
            topic.left_bytes,
            topic.records_gone,
            topic.tombstones,
            "yes" if topic.is_due else "no",
        )
        for topic in report.topics
    ]
    columns = ("topic", "segments", "bytes now", "retention.bytes frees", "retention.ms frees", "compaction frees")
    more = ("left", "records dropped", "tombstones", "cleaning is due")
    note = (
        "Retention is exact to the byte. Compaction is an estimate: records are counted, and their bytes are taken in "
        "proportion. Tombstones stay for delete.retention.ms after a cleaning. Where a cleaning is due "
        "(min.cleanable.dirty.ratio), the cleaner starts it."
    )
    sections = [
        Section("By topic", note, (Table(columns + more, rows),)),
        Section("Now", "", (_bars(report),)),
        Section(
            "Over time",
            f"Bytes freed by retention over the next {report.days:g} days if nothing more is written.",
            (_lines(report),),
        ),
    ]
    return render_page("Barnabas: what these settings would free", facts, sections)


def _bars(report: WhatIfReport) -> Chart:
    topics = report.topics[: 2 * CHARTED_TOPICS]
    return Chart(
        "Bytes by topic",
        [topic.topic for topic in topics],
        {
            "left": [topic.left_bytes for topic in topics],
            "retention.bytes": [topic.freed_by_size for topic in topics],
            "retention.ms": [topic.freed_by_time for topic in topics],
            "compaction": [topic.freed_by_compaction for topic in topics],
        },
        "bytes",
        is_stacked=True,
    )


def _lines(report: WhatIfReport) -> Chart:
    shown = [topic.topic for topic in report.topics[:CHARTED_TOPICS]]
    series: dict[str, list[float]] = {topic: _cumulated(report, {topic}) for topic in shown}
    others = {topic.topic for topic in report.topics} - set(shown)
    if others:
        series["all others"] = _cumulated(report, others)
    step_ms = report.days * _DAY_MS / STEPS
    form = "%m-%d" if report.days >= 2 else "%m-%d %H:%M"
    labels = [
        datetime.fromtimestamp((report.now_ms + step * step_ms) / 1000, UTC).strftime(form) for step in range(STEPS + 1)
    ]
    return Chart("Bytes freed, cumulative", labels, series, "bytes", is_line=True)


def _cumulated(report: WhatIfReport, topics: set[str]) -> list[float]:
    total, values = 0, []
    for step in range(STEPS + 1):
        total += sum(report.freed.get((topic, step), 0) for topic in topics)
        values.append(float(total))
    return values
