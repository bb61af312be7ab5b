"""Comparison of an archive with its log: every record once, with the same key, value, headers and timestamp.

What is compared is not decoded: timestamps as milliseconds, which an archive's microseconds hold unless they were above
its range, and the names of headers as bytes. Both sides are reduced to (topic, partition, offset, 64-bit hash of the
content) and counted in one shuffle, so the cost is that of reading both. An offset's state is one of:

    matching     once on each side, with the same content
    missing      only in the log, although the archive has a later record of that partition
    pending      in the log after the archive's last record: not archived yet
    doubled      more than once in the archive
    differing    on both sides, with different content
    expired      in the archive, before the log's first record: removed from the log by retention
    extra        only in the archive, within the log's range: removed by compaction, or never in the log
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import TimestampType

from barnabas.pipeline.reading.schema import HEADERS, UNDECODED

STATES = ("matching", "missing", "pending", "doubled", "differing", "expired", "extra")
FAULTS = ("missing", "doubled", "differing", "extra")

_LOG = ("topic", "partition")
_CONTENT = ("key", "value", "timestamp", "headers")


def read_archive(spark: SparkSession, archive: str, topics: Sequence[str]) -> DataFrame:
    """Read the records of these topics in an archive, with the columns of its files."""
    paths = [f"{archive.rstrip('/')}/{topic}" for topic in topics]
    return spark.read.option("recursiveFileLookup", "true").parquet(*paths)


def compare_offsets(archive: DataFrame, log: DataFrame) -> DataFrame:
    """Compute topic, partition, offset, state: one row for each offset on either side.

    Both need topic, partition, offset, key, value, timestamp; headers are compared where both have them. `log` is read
    undecoded (RecordSource.read), or a record that its types cannot hold fails the comparison.
    """
    content = [name for name in _CONTENT if name in archive.columns and name in log.columns]
    offsets = (
        _reduced(archive, content, is_archive=True)
        .unionAll(_reduced(log, content, is_archive=False))
        .groupBy(*_LOG, "offset")
        .agg(
            F.sum("archived").alias("archived"),
            F.sum("logged").alias("logged"),
            (F.min("content") == F.max("content")).alias("is_same"),
        )
    )
    bounds = _bounds(archive, F.max("offset").alias("archive_end")).join(
        _bounds(log, F.min("offset").alias("log_start")), [*_LOG], "full"
    )
    is_archived, is_logged = F.col("archived") > 0, F.col("logged") > 0
    is_behind = F.col("archive_end").isNull() | (F.col("offset") > F.col("archive_end"))
    is_before = F.col("log_start").isNull() | (F.col("offset") < F.col("log_start"))
    state = (
        F.when(is_logged & ~is_archived, F.when(is_behind, "pending").otherwise("missing"))
        .when(F.col("archived") > 1, "doubled")
        .when(~is_logged, F.when(is_before, "expired").otherwise("extra"))
        .when(F.col("is_same"), "matching")
        .otherwise("differing")
    )
    return offsets.join(F.broadcast(bounds), [*_LOG]).select(*_LOG, "offset", state.alias("state"))


def count_states(offsets: DataFrame) -> DataFrame:
    """Count `compare_offsets` by state: topic, partition, and a long for each of STATES."""
    counted = [F.sum((F.col("state") == state).cast("long")).alias(state) for state in STATES]
    return offsets.groupBy(*_LOG).agg(*counted).orderBy(*_LOG)


def content_hash(columns: list[str]) -> Column:
    """Hash these columns to 64 bits; null differs from empty, and the order of the values matters."""
    parts = []
    for name in columns:
        parts += [F.col(name).isNull(), F.col(name)]
    return F.xxhash64(*parts)


def _reduced(records: DataFrame, content: list[str], *, is_archive: bool) -> DataFrame:
    return _undecoded(records).select(
        *_LOG,
        "offset",
        F.lit(1 if is_archive else 0).alias("archived"),
        F.lit(0 if is_archive else 1).alias("logged"),
        content_hash(content).alias("content"),
    )


def _undecoded(records: DataFrame) -> DataFrame:
    """Convert the columns to their undecoded types."""
    if isinstance(records.schema["timestamp"].dataType, TimestampType):
        records = records.withColumn("timestamp", F.unix_millis("timestamp"))
    if HEADERS in records.columns:
        records = records.withColumn(HEADERS, F.col(HEADERS).cast(UNDECODED[HEADERS]))
    return records


def _bounds(records: DataFrame, bound: Column) -> DataFrame:
    return records.groupBy(*_LOG).agg(bound)
