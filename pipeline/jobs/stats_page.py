"""The page of stats: tables for all topics, and four charts for each of the largest."""

from __future__ import annotations

from typing import Any

from barnabas.pipeline.jobs.stats_report import Rows, StatsReport
from barnabas.pipeline.report.charts import bar_chart, bytes_text, count_text
from barnabas.pipeline.report.page import Section, Table, render_page

CHARTED_TOPICS = 12


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
            f"{row['first_timestamp']:%Y-%m-%d %H:%M}",
            f"{row['last_timestamp']:%Y-%m-%d %H:%M}",
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
    form = "%Y-%m-%d" if report.bucket_seconds >= 24 * 3600 else "%m-%d %H:%M"
    content: list[Table | str] = [
        bar_chart(
            f"Age: bytes by time of the record (each bar {_span_text(report.bucket_seconds)})",
            [row["bucket"].strftime(form) for row in ages],
            {"bytes": [row["bytes"] for row in ages]},
            show=bytes_text,
        ),
        bar_chart(
            "Size: records by bytes of key and value",
            [class_text(row["class"], bytes_text) for row in sizes],
            {"records": [row["records"] for row in sizes]},
            show=count_text,
        ),
        bar_chart(
            "Keys: number of keys by number of records",
            [class_text(row["class"], count_text) for row in keys],
            {"keys": [row["keys"] for row in keys]},
            show=count_text,
        ),
    ]
    if batches:
        content.append(_batches(batches))
    if top:
        rows = [(row["key"], row["records"], row["tombstones"], row["bytes"], f"{row['share']:.2%}") for row in top]
        content.append(Table(("largest keys", "records", "tombstones", "bytes", "share of the topic"), rows))
    return Section(topic, "", content)


def _batches(batches: Rows) -> str:
    classes = sorted({row["class"] for row in batches})
    found = {(row["codec"], row["class"]): row["batches"] for row in batches}
    codecs = sorted({row["codec"] for row in batches})
    return bar_chart(
        "Batches by size on disk and compression",
        [class_text(number, bytes_text) for number in classes],
        {codec: [found.get((codec, number), 0) for number in classes] for codec in codecs},
        show=count_text,
        stacked=True,
    )


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
