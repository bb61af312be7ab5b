"""The job archive copies topics to Parquet files by topic, date and hour: each record once, resumable.

    <archive>/<topic>/date=2024-02-29/hour=13/<topic>-<partition>-<first offset>-<last offset>.parquet

It is a streaming query whose checkpoint is in the archive: it continues where the last run stopped or crashed
(archive/manifest.py). Hours are those of the records' timestamps in UTC. Several queries, each with its own
name and topics, can share an archive directory.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from barnabas.pipeline.archive.manifest import DEFAULT_NAME, ArchiveState
from barnabas.pipeline.archive.sink import FORMAT, ArchiveSink
from barnabas.pipeline.jobs.summary import Summary

COLUMNS = ("key", "value", "headers", "topic", "partition", "offset", "timestamp", "timestampType")
_MICROSECONDS_PER_HOUR = 3_600_000_000


@dataclass(frozen=True, slots=True)
class ArchiveOptions:
    """`source`: options of `format("barnabas")`, with `path` for segment files.

    `interval_s` None: stop at the current end; otherwise keep running, with a micro-batch at this interval.
    """

    archive: str
    source: Mapping[str, str]
    name: str = DEFAULT_NAME
    interval_s: float | None = None
    query_options: Mapping[str, str] = field(default_factory=dict)


def archive_rows(records: DataFrame) -> DataFrame:
    """Add `date` (date) and `hour` (int) of the timestamps in UTC, independent of the session's time zone."""
    hours = sf.floor(sf.unix_micros("timestamp") / sf.lit(_MICROSECONDS_PER_HOUR))
    return records.select(
        *COLUMNS,
        sf.date_from_unix_date(sf.floor(hours / 24).cast("int")).alias("date"),
        sf.pmod(hours, sf.lit(24)).cast("int").alias("hour"),
    )


def run(spark: SparkSession, options: ArchiveOptions) -> Summary:
    """Archive the records that are not archived yet. Raises PySparkException, PipelineError, OSError."""
    started = time.monotonic()
    state = ArchiveState(options.archive, options.name)
    before = state.batches()
    if before:
        state.finish(state.files(before[-1]))
    spark.dataSource.register(ArchiveSink)
    records = spark.readStream.format("barnabas").options(**{"includeHeaders": "true", **options.source}).load()
    writer = (
        archive_rows(records)
        .writeStream.format(FORMAT)
        .queryName(f"archive {options.name}")
        .option("path", options.archive)
        .option("name", options.name)
        .option("checkpointLocation", state.checkpoint)
        .options(**options.query_options)
    )
    if options.interval_s is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{options.interval_s} seconds")
    query = writer.start()
    try:
        query.awaitTermination()
    finally:
        query.stop()
    return summary_of(state, after=before[-1] if before else -1, seconds=time.monotonic() - started)


def summary_of(state: ArchiveState, *, after: int, seconds: float) -> Summary:
    """Summarize the micro-batches after `after`. Raises OSError, PipelineError."""
    batches = [batch for batch in state.batches() if batch > after]
    files = [file for batch in batches for file in state.files(batch)]
    return Summary(
        "archive",
        records=sum(file.records for file in files),
        size_bytes=sum(file.size_bytes for file in files),
        files=len(files),
        seconds=seconds,
        details={"micro-batches": len(batches), "topics": len({file.topic for file in files}), "to": state.archive},
    )
