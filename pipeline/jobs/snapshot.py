"""The job snapshot writes the latest record of each key, as compaction would leave it.

`latest_per_key` takes records (the source's columns) and returns one row for each topic, partition and key: the record
with the largest offset. A key whose latest record is a tombstone (a null value) is left out, as compaction eventually
removes it; so are records without a key, which the cleaner drops. Source: Kafka Cleaner.shouldRetainRecord.

Records are reduced before they are shuffled, so that a hot key costs what a cold one costs, and both sides spill to
disk: no key and no partition has to fit in memory.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from barnabas.pipeline.archive.written_files import written_files
from barnabas.pipeline.jobs.record_source import RecordSource
from barnabas.pipeline.jobs.summary import Summary

_IDENTITY = ("topic", "partition", "key")


@dataclass(frozen=True, slots=True)
class SnapshotOptions:
    """`output`: path or URI for Parquet files, a folder for each topic. It must not exist unless `overwrite`."""

    source: RecordSource
    output: str
    across_partitions: bool = False
    keep_tombstones: bool = False
    overwrite: bool = False


def run(spark: SparkSession, options: SnapshotOptions) -> Summary:
    """Write the snapshot as Parquet, partitioned by topic. The summary counts the records read."""
    began = time.monotonic()
    read, kept = Observation("read"), Observation("kept")
    records = options.source.read(spark).observe(read, F.count(F.lit(1)).alias("records"))
    latest = latest_per_key(
        records, across_partitions=options.across_partitions, keep_tombstones=options.keep_tombstones
    ).observe(kept, F.count(F.lit(1)).alias("records"))
    latest.write.mode("overwrite" if options.overwrite else "errorifexists").partitionBy("topic").parquet(
        options.output
    )
    files = written_files(options.output)
    return Summary(
        job="snapshot",
        records=read.get["records"],
        size_bytes=files.size_bytes,
        files=files.files,
        seconds=time.monotonic() - began,
        details={"keys": kept.get["records"], "output": options.output},
    )


def latest_per_key(records: DataFrame, *, across_partitions: bool = False, keep_tombstones: bool = False) -> DataFrame:
    """Return the columns of `records`, one row for each key of each partition.

    `across_partitions` treats a topic as one table: a key's latest record is the one with the largest timestamp, then
    the larger offset. It is for topics whose partition count was increased, where one key is in two partitions.
    `keep_tombstones` keeps deleted keys with their null value.
    """
    identity = [name for name in _IDENTITY if name != "partition" or not across_partitions]
    order: Column = F.col("offset")
    if across_partitions:
        order = F.struct("timestamp", "offset", "partition")
    others = [name for name in records.columns if name not in identity]
    latest = (
        records.where(F.col("key").isNotNull())
        .groupBy(*identity)
        .agg(F.max_by(F.struct(*others), order).alias("latest"))
        .select(*identity, "latest.*")
        .select(*records.columns)
    )
    return latest if keep_tombstones else latest.where(F.col("value").isNotNull())
