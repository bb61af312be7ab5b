"""Snapshot: the latest record of each key, which is what compaction would leave.

`latest_per_key` takes records (the source's columns) and gives one row for each topic, partition and key: the record
with the largest offset. A key whose latest record is a tombstone (a null value) is gone, as compaction lets it go in
the end; records without a key are left out, as the cleaner drops them. Source: Kafka Cleaner.shouldRetainRecord.

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
    """`output`: path or URI for Parquet files, in a folder for each topic; not to be there yet unless `overwrite`."""

    source: RecordSource
    output: str
    across_partitions: bool = False
    keep_tombstones: bool = False
    overwrite: bool = False


def run(spark: SparkSession, options: SnapshotOptions) -> Summary:
    """Write the snapshot as Parquet, partitioned by topic. The summary's records are those that were read."""
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
    """The columns of `records`, one row for each key of each partition.

    `across_partitions` takes a topic as one table: a key's latest record is then the one with the largest timestamp,
    of equal ones that with the larger offset. It is for topics that were given more partitions, where a key's records
    lie in two. `keep_tombstones` shows deleted keys with their null value.
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
