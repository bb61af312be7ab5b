"""Results of the job stats for one source, as JSON, tables and a page."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from barnabas.pipeline.jobs.record_source import RecordSource
from barnabas.pipeline.jobs.stats import (
    age_histogram,
    batch_histogram,
    dirty_ratios,
    key_histogram,
    key_usage,
    partition_usage,
    size_histogram,
    time_usage,
    top_keys,
)
from barnabas.pipeline.jobs.summary import Summary
from barnabas.pipeline.segments.batch_facts import batch_facts
from barnabas.pipeline.segments.facts import segment_facts
from barnabas.pipeline.segments.log_files import find_logs

_MINUTE, _HOUR, _DAY = 60, 3600, 24 * 3600
_BUCKETS_S = (1, 10, _MINUTE, 10 * _MINUTE, _HOUR, 6 * _HOUR, _DAY, 7 * _DAY, 30 * _DAY, 365 * _DAY)
_MAX_BUCKETS = 60

Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class StatsOptions:
    """`top`: number of keys listed for each topic, the largest by `top_by` (bytes or records)."""

    source: RecordSource
    top: int = 20
    top_by: str = "bytes"


@dataclass(frozen=True, slots=True)
class StatsReport:
    """Rows of the functions in jobs/stats, with keys as text. Statistics of files are empty for a broker."""

    place: str
    seconds: float
    bucket_seconds: int
    partitions: Rows
    top_keys: Rows
    key_histogram: Rows
    ages: Rows
    sizes: Rows
    batches: Rows = field(default_factory=list)
    dirty: Rows = field(default_factory=list)

    @property
    def topics(self) -> list[str]:
        """Return the topics by bytes, the largest first."""
        sizes: dict[str, int] = {}
        for row in self.partitions:
            sizes[row["topic"]] = sizes.get(row["topic"], 0) + row["bytes"]
        return sorted(sizes, key=lambda topic: (-sizes[topic], topic))

    def summary(self) -> Summary:
        """Summarize the records read, and the bytes of their keys and values."""
        return Summary(
            job="stats",
            records=sum(row["records"] for row in self.partitions),
            size_bytes=sum(row["bytes"] for row in self.partitions),
            files=0,
            seconds=self.seconds,
            details={
                "topics": len(self.topics),
                "partitions": len(self.partitions),
                "superseded_records": sum(row["superseded_records"] for row in self.partitions),
                "superseded_bytes": sum(row["superseded_bytes"] for row in self.partitions),
            },
        )

    def as_json(self) -> dict[str, Any]:
        """Return the report for JSON, with times in ISO 8601."""
        return {name: _plain(value) for name, value in asdict(self).items()}


def run(spark: SparkSession, options: StatsOptions) -> StatsReport:
    """Read the source twice (keys, then times), and each batch header of segment files."""
    began = time.monotonic()
    source = options.source
    usage = key_usage(source.read(spark, ("topic", "partition", "offset", "timestamp", "key", "value")))
    usage = usage.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        partitions = _rows(partition_usage(usage).orderBy("topic", "partition"))
        keys = _rows(top_keys(usage, options.top, by=options.top_by))
        histogram = _rows(key_histogram(usage))
    finally:
        usage.unpersist()
    bucket_seconds = bucket_for(partitions)
    times = time_usage(source.read(spark, ("topic", "timestamp", "key", "value")), bucket_seconds).cache()
    try:
        ages, sizes = _rows(age_histogram(times)), _rows(size_histogram(times))
    finally:
        times.unpersist()
    batches, dirty = _of_files(spark, source)
    return StatsReport(
        place=source.bootstrap or ", ".join(map(str, source.log_dirs)),
        seconds=time.monotonic() - began,
        bucket_seconds=bucket_seconds,
        partitions=partitions,
        top_keys=[{**row, "key": key_text(row["key"])} for row in keys],
        key_histogram=histogram,
        ages=ages,
        sizes=sizes,
        batches=batches,
        dirty=dirty,
    )


def bucket_for(partitions: Sequence[dict[str, Any]]) -> int:
    """Choose the length of a time bucket: the shortest predefined one that divides the range into at most 60."""
    if not partitions:
        return _BUCKETS_S[0]
    first = min(row["first_timestamp"] for row in partitions)
    last = max(row["last_timestamp"] for row in partitions)
    span_s = (last - first).total_seconds()
    return next((bucket for bucket in _BUCKETS_S if span_s / bucket <= _MAX_BUCKETS), _BUCKETS_S[-1])


def key_text(key: bytes | bytearray) -> str:
    """Format a key: printable UTF-8 as text, anything else in hexadecimal; long keys are cut."""
    try:
        text = bytes(key).decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if not text.isprintable() or (key and not text):
        text = f"0x{bytes(key).hex()}"
    return text if len(text) <= 80 else f"{text[:77]}..."


def _of_files(spark: SparkSession, source: RecordSource) -> tuple[Rows, Rows]:
    if not source.log_dirs:
        return [], []
    logs = find_logs([Path(log_dir) for log_dir in source.log_dirs], source.topics)
    return _rows(batch_histogram(batch_facts(spark, logs))), _rows(dirty_ratios(segment_facts(spark, logs)))


def _rows(frame: DataFrame) -> Rows:
    return [row.asDict() for row in frame.collect()]


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [{name: _plain(cell) for name, cell in row.items()} for row in value]
    return value.isoformat() if isinstance(value, datetime) else value
