"""Whether an archive holds what the log holds: every record once, with the same key, value, headers and timestamp.

Both sides are reduced to (topic, partition, offset, 64-bit hash of the content) and counted in one shuffle, so it costs
what reading both costs, at any size. By offset a record is one of

    matching     once on each side, with the same content
    missing      in the log and not in the archive, though the archive has a later record of that partition
    pending      in the log behind the archive's last record: not archived yet
    doubled      more than once in the archive
    differing    on both sides, with different content
    expired      in the archive, and before the log's first record: retention has removed it from the log
    extra        in the archive, inside of what the log covers, and not there: compaction removed it, or it never was
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

STATES = ("matching", "missing", "pending", "doubled", "differing", "expired", "extra")
FAULTS = ("missing", "doubled", "differing", "extra")

_LOG = ("topic", "partition")
_CONTENT = ("key", "value", "timestamp", "headers")


def read_archive(spark: SparkSession, archive: str, topics: Sequence[str]) -> DataFrame:
    """The records of these topics in an archive, with the columns of its files."""
    paths = [f"{archive.rstrip('/')}/{topic}" for topic in topics]
    return spark.read.option("recursiveFileLookup", "true").parquet(*paths)


def compare_offsets(archive: DataFrame, log: DataFrame) -> DataFrame:
    """topic, partition, offset, state: one row for each offset that either side has.

    Both need topic, partition, offset, key, value, timestamp; headers are compared where both have them.
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
    """Of `compare_offsets`: topic, partition, and a long for each of STATES."""
    counted = [F.sum((F.col("state") == state).cast("long")).alias(state) for state in STATES]
    return offsets.groupBy(*_LOG).agg(*counted).orderBy(*_LOG)


def content_hash(columns: list[str]) -> Column:
    """64 bits of these columns; a null and an empty value differ, and so do values that change places."""
    parts = []
    for name in columns:
        parts += [F.col(name).isNull(), F.col(name)]
    return F.xxhash64(*parts)


def _reduced(records: DataFrame, content: list[str], *, is_archive: bool) -> DataFrame:
    return records.select(
        *_LOG,
        "offset",
        F.lit(1 if is_archive else 0).alias("archived"),
        F.lit(0 if is_archive else 1).alias("logged"),
        content_hash(content).alias("content"),
    )


def _bounds(records: DataFrame, bound: Column) -> DataFrame:
    return records.groupBy(*_LOG).agg(bound)
