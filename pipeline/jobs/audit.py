"""The job audit checks data directories: CRC, order, gaps, counts, indexes, checkpoints.

Findings are faults (log_check, the checks of `barnabas log verify`). Gaps are reported separately: missing offsets are
normal in a compacted log and after transaction markers, and a loss in other logs. archive_comparison compares an
archive with its log.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from barnabas.broker.storage.inspection.findings import Circumstances, Finding, LogExtent
from barnabas.broker.storage.inspection.verify_checkpoints import checkpoint_findings
from barnabas.broker.storage.inspection.verify_directory import circumstances_of
from barnabas.pipeline.segments.log_files import StoredLog
from barnabas.protocol.topic_partition import TopicPartition

_LOG = ("topic", "partition")


def log_counts(batches: DataFrame) -> DataFrame:
    """Summarize `batch_facts`: one row for each log with a batch.

    topic, partition, segments, batches, bytes
    records          long    without markers; uncounted message sets count by their offsets
    markers          long    control records
    first_offset     long    of the first batch
    end_offset       long    after the last batch
    gaps             long    number of gaps between two batches
    missing_offsets  long    in those gaps
    holes            long    offsets inside batches without a record (removed by compaction)
    """
    log = Window.partitionBy(*_LOG).orderBy("base_offset", "segment", "position")
    span = F.col("last_offset") - F.col("base_offset") + 1
    counted = F.when(F.col("records") < 0, span).otherwise(F.col("records").cast("long"))
    jump = F.col("base_offset") - F.lag("last_offset").over(log) - 1
    facts = batches.withColumn("_span", span).withColumn("_counted", counted).withColumn("_jump", jump)
    return (
        facts.groupBy(*_LOG)
        .agg(
            F.countDistinct("segment").alias("segments"),
            F.count("*").alias("batches"),
            F.sum("size_bytes").alias("bytes"),
            F.sum(F.when(F.col("is_control"), 0).otherwise(F.col("_counted"))).alias("records"),
            F.sum(F.when(F.col("is_control"), F.col("_counted")).otherwise(0)).alias("markers"),
            F.min("base_offset").alias("first_offset"),
            (F.max("last_offset") + 1).alias("end_offset"),
            F.sum((F.col("_jump") > 0).cast("long")).alias("gaps"),
            F.sum(F.when(F.col("_jump") > 0, F.col("_jump")).otherwise(0)).alias("missing_offsets"),
            F.sum(F.col("_span") - F.col("_counted")).alias("holes"),
        )
        .na.fill(0, ["gaps", "missing_offsets"])
        .orderBy(*_LOG)
    )


def gaps(batches: DataFrame) -> DataFrame:
    """Find gaps in `batch_facts`: topic, partition, path, position (of the next batch), first_missing, last_missing."""
    log = Window.partitionBy(*_LOG).orderBy("base_offset", "segment", "position")
    return (
        batches.withColumn("first_missing", F.lag("last_offset").over(log) + 1)
        .withColumn("last_missing", F.col("base_offset") - 1)
        .where(F.col("first_missing") <= F.col("last_missing"))
        .select(*_LOG, "path", "position", "first_missing", "last_missing")
        .orderBy(*_LOG, "first_missing")
    )


def circumstances_by_path(logs: Iterable[StoredLog]) -> dict[str, Circumstances]:
    """Inspect the data directories of these logs. Raises OSError."""
    return {log_dir: circumstances_of(Path(log_dir)) for log_dir in sorted({log.log_dir for log in logs})}


def checkpoints_of(
    logs: Iterable[StoredLog], extents: Iterable[Row], circumstances: dict[str, Circumstances]
) -> list[Finding]:
    """Check the directories' checkpoint files; `extents` are closing rows of log_check. Raises OSError."""
    found = {
        TopicPartition(row["topic"], row["partition"]): LogExtent(row["first_offset"], row["end_offset"])
        for row in extents
        if row["end_offset"] is not None
    }
    homes: dict[str, dict[TopicPartition, LogExtent]] = {log_dir: {} for log_dir in circumstances}
    for log in logs:
        topic_partition = TopicPartition(log.topic, log.partition)
        if topic_partition in found:
            homes[log.log_dir][topic_partition] = found[topic_partition]
    return [
        finding
        for log_dir, of_dir in homes.items()
        for finding in checkpoint_findings(Path(log_dir), of_dir, circumstances[log_dir])
    ]
