"""The page of stats: tables for all topics, and four charts for each of the largest."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from barnabas.pipeline.jobs.stats_report import Rows, StatsReport
from barnabas.pipeline.report.charts import Chart, bytes_text, count_text
from barnabas.pipeline.report.page import Section, Table, render_page

CHARTED_TOPICS = 12
_DAY_SECONDS = 24 * 3600
_MINUTE_SECONDS = 60


def stats_page(report: StatsReport) -> str:
    """Render the report as HTML."""
    total = report.summary()
    facts = {
        "read from": report.place,
        "records": f"{total.records:,}",
        "keys and values": bytes_text(total.size_bytes),
        "topics": str(len(report.topics)),
    }
    charted = report.topics[:CHARTED_TOPICS]
    sections = [_partitions(report), *(_topic(report, topic) for topic in charted)]
    if len(charted) < len(report.topics):
        rest = f"{len(report.topics) - len(charted)} smaller topics appear only in the table above."
        sections.append(Section("Other topics", rest, ()))
    return render_page("Barnabas: contents of the log", facts, sections)


def _partitions(report: StatsReport) -> Section:
    ratios = {(row["topic"], row["partition"]): row["dirty_ratio"] for row in report.dirty}
    rows = [
        (
            row["topic"],
            row["partition"],
            row["records"],
            row["bytes"],
            row["keys"],
            row["keyless"],
            row["tombstones"],
            row["superseded_records"],
            row["superseded_bytes"],
            ratios.get((row["topic"], row["partition"])),
            row["first_timestamp"],
            row["last_timestamp"],
        )
        for row in report.partitions
    ]
    columns = ("topic", "partition", "records", "bytes", "keys", "without key", "tombstones", "superseded")
    more = ("superseded bytes", "dirty ratio", "oldest (UTC)", "newest (UTC)")
    return Section(
        "Partitions",
        "Bytes are of keys and values. Superseded: a later record has the same key, so compaction would drop it. The "
        "dirty ratio is the cleaner's, of sealed segments; it is available only when files were read.",
        (Table(columns + more, rows),),
    )


def _topic(report: StatsReport, topic: str) -> Section:
    ages, sizes = _of(report.ages, topic), _of(report.sizes, topic)
    keys, batches, top = _of(report.key_histogram, topic), _of(report.batches, topic), _of(report.top_keys, topic)
    content: list[Table | Chart] = [
        Chart(
            "Age: bytes by time of the record",
            time_labels([row["bucket"] for row in ages], report.bucket_seconds),
            {"bytes": [row["bytes"] for row in ages]},
            "bytes",
            note=f"each bar {_span_text(report.bucket_seconds)}",
        ),
        Chart(
            "Size: records by bytes of key and value",
            [class_text(row["class"], bytes_text) for row in sizes],
            {"records": [row["records"] for row in sizes]},
        ),
        Chart(
            "Keys: number of keys by number of records",
            [class_text(row["class"], count_text) for row in keys],
            {"keys": [row["keys"] for row in keys]},
        ),
    ]
    if batches:
        content.append(_batches(batches))
    if top:
        rows = [(row["key"], row["records"], row["tombstones"], row["bytes"], f"{row['share']:.2%}") for row in top]
        content.append(Table(("largest keys", "records", "tombstones", "bytes", "share of the topic"), rows))
    return Section(topic, "", content)


def _batches(batches: Rows) -> Chart:
    classes = sorted({row["class"] for row in batches})
    found = {(row["codec"], row["class"]): row["batches"] for row in batches}
    codecs = sorted({row["codec"] for row in batches})
    return Chart(
        "Batches by size on disk and compression",
        [class_text(number, bytes_text) for number in classes],
        {codec: [found.get((codec, number), 0) for number in classes] for codec in codecs},
        is_stacked=True,
    )


def time_labels(times: Sequence[datetime], bucket_seconds: int) -> list[str]:
    """Write the beginnings of time buckets so that no two look the same: with seconds where buckets are seconds."""
    if bucket_seconds >= _DAY_SECONDS:
        form = "%Y-%m-%d"
    else:
        form = "%H:%M:%S" if bucket_seconds < _MINUTE_SECONDS else "%H:%M"
        if len({each.date() for each in times}) > 1:
            form = "%m-%d " + form
    return [each.strftime(form) for each in times]


def class_text(number: int, show: Any) -> str:
    """Format the lower bound of a `size_class`: `64 B+`."""
    return str(show(0)) if number == 0 else f"{show(2 ** (number - 1))}+"


def _span_text(seconds: int) -> str:
    for unit, name in ((24 * 3600, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        if seconds % unit == 0:
            count = seconds // unit
            return f"{count} {name}{'s' if count > 1 else ''}"
    raise AssertionError(seconds)


def _of(rows: Rows, topic: str) -> Rows:
    return [row for row in rows if row["topic"] == topic]
