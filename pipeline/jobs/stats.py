"""The job stats reports keys and their sizes, ages, record sizes, and the work left for compaction.

Everything starts from two passes over the records, each reduced before it is shuffled:

    key_usage     one row for each topic, partition and key; the base of all key statistics
    time_usage    one row for each topic, time bucket and size class: both histograms of records

and, for logs read from files, from `segment_facts` and `batch_facts`. Size class n is 2**(n-1) to 2**n - 1 bytes
(class 0: zero bytes); see `size_class`.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

_LOG = ("topic", "partition")


def key_usage(records: DataFrame) -> DataFrame:
    """Aggregate records by key. `records` needs topic, partition, offset, timestamp, key, value.

    topic, partition, key
    records           long
    tombstones        long        records without a value
    bytes             long        of keys and values
    latest_bytes      long        of the latest record
    is_deleted        boolean     the latest record is a tombstone
    first_offset, last_offset                long
    first_timestamp, last_timestamp          timestamp
    """
    return (
        records.select(*_LOG, "key", "offset", "timestamp", payload_bytes().alias("_bytes"), "value")
        .groupBy(*_LOG, "key")
        .agg(
            F.count("*").alias("records"),
            F.sum(F.col("value").isNull().cast("long")).alias("tombstones"),
            F.sum("_bytes").alias("bytes"),
            F.max_by("_bytes", "offset").cast("long").alias("latest_bytes"),
            F.max_by(F.col("value").isNull(), F.col("offset")).alias("is_deleted"),
            F.min("offset").alias("first_offset"),
            F.max("offset").alias("last_offset"),
            F.min("timestamp").alias("first_timestamp"),
            F.max("timestamp").alias("last_timestamp"),
        )
    )


def partition_usage(usage: DataFrame) -> DataFrame:
    """Summarize `key_usage`: one row for each partition.

    topic, partition, records, tombstones, bytes, first_offset, last_offset, first_timestamp, last_timestamp
    keys                   long    distinct
    keyless                long    records without a key
    superseded_records     long    compaction would drop them: a later record has the same key
    superseded_bytes       long
    """
    has_key = F.col("key").isNotNull()
    return usage.groupBy(*_LOG).agg(
        F.sum("records").alias("records"),
        F.sum("tombstones").alias("tombstones"),
        F.sum("bytes").alias("bytes"),
        F.min("first_offset").alias("first_offset"),
        F.max("last_offset").alias("last_offset"),
        F.min("first_timestamp").alias("first_timestamp"),
        F.max("last_timestamp").alias("last_timestamp"),
        F.count("key").alias("keys"),
        F.sum(F.when(has_key, 0).otherwise(F.col("records"))).alias("keyless"),
        F.sum(F.when(has_key, F.col("records") - 1).otherwise(0)).alias("superseded_records"),
        F.sum(F.when(has_key, F.col("bytes") - F.col("latest_bytes")).otherwise(0)).alias("superseded_bytes"),
    )


def top_keys(usage: DataFrame, count: int, *, by: str = "bytes") -> DataFrame:
    """Return the `count` largest keys of each topic in `key_usage`; `by` is bytes or records.

    topic, key, records, tombstones, bytes, share (of the topic's records or bytes, 0.0 to 1.0)
    """
    keys = usage.groupBy("topic", "key").agg(
        F.sum("records").alias("records"), F.sum("tombstones").alias("tombstones"), F.sum("bytes").alias("bytes")
    )
    totals = usage.groupBy("topic").agg(F.sum(by).alias("_total"))
    largest_first = Window.partitionBy("topic").orderBy(F.col(by).desc(), F.col("key"))
    return (
        keys.where(F.col("key").isNotNull())
        .withColumn("_rank", F.row_number().over(largest_first))
        .where(F.col("_rank") <= count)
        .join(F.broadcast(totals), "topic")
        .orderBy("topic", "_rank")
        .select("topic", "key", "records", "tombstones", "bytes", (F.col(by) / F.col("_total")).alias("share"))
    )


def key_histogram(usage: DataFrame) -> DataFrame:
    """Compute a histogram of `key_usage`: number of keys by number of records.

    topic, class (int, of `size_class` over a key's records), keys, records, bytes
    """
    return (
        usage.where(F.col("key").isNotNull())
        .groupBy("topic", "key")
        .agg(F.sum("records").alias("records"), F.sum("bytes").alias("bytes"))
        .groupBy("topic", size_class(F.col("records")).alias("class"))
        .agg(F.count("*").alias("keys"), F.sum("records").alias("records"), F.sum("bytes").alias("bytes"))
        .orderBy("topic", "class")
    )


def time_usage(records: DataFrame, bucket_seconds: int) -> DataFrame:
    """Aggregate records by time and size. `records` needs topic, timestamp, key, value.

    topic
    bucket     timestamp    its start: a multiple of bucket_seconds since 1970
    class      int          of `size_class` over the bytes of key and value
    records, bytes          long
    """
    seconds = F.floor(F.unix_micros("timestamp") / (bucket_seconds * 1_000_000)) * bucket_seconds
    return (
        records.select("topic", seconds.alias("_seconds"), payload_bytes().alias("_bytes"))
        .groupBy("topic", "_seconds", size_class(F.col("_bytes")).alias("class"))
        .agg(F.count("*").alias("records"), F.sum("_bytes").alias("bytes"))
        .select("topic", F.timestamp_seconds("_seconds").alias("bucket"), "class", "records", "bytes")
    )


def age_histogram(times: DataFrame) -> DataFrame:
    """Sum `time_usage` by bucket: topic, bucket, records, bytes, oldest first."""
    return (
        times.groupBy("topic", "bucket")
        .agg(F.sum("records").alias("records"), F.sum("bytes").alias("bytes"))
        .orderBy("topic", "bucket")
    )


def size_histogram(times: DataFrame) -> DataFrame:
    """Sum `time_usage` by record size: topic, class, records, bytes."""
    return (
        times.groupBy("topic", "class")
        .agg(F.sum("records").alias("records"), F.sum("bytes").alias("bytes"))
        .orderBy("topic", "class")
    )


def batch_histogram(batches: DataFrame) -> DataFrame:
    """Compute a histogram of `batch_facts`: topic, codec, class (of a batch's bytes), batches, records, bytes.

    Markers are left out; `records` excludes message sets that do not store their count.
    """
    counted = F.when(F.col("records") > 0, F.col("records")).otherwise(0)
    return (
        batches.where(~F.col("is_control"))
        .groupBy(
            "topic",
            F.coalesce("codec", F.lit("unknown")).alias("codec"),
            size_class(F.col("size_bytes")).alias("class"),
        )
        .agg(F.count("*").alias("batches"), F.sum(counted).alias("records"), F.sum("size_bytes").alias("bytes"))
        .orderBy("topic", "codec", "class")
    )


def dirty_ratios(segments: DataFrame) -> DataFrame:
    """Compute the cleaner's view of `segment_facts`: whole segments, without the active one.

    topic, partition, segments, bytes
    clean_bytes, dirty_bytes     long      sealed segments that begin below the clean offset; those that end above it
    dirty_ratio                  double    dirty / (clean + dirty); null where no segment is sealed

    A segment that contains the clean offset counts as both clean and dirty, as in the cleaner.
    """
    log = Window.partitionBy(*_LOG).orderBy("base_offset")
    clean_offset = F.coalesce(F.col("clean_offset"), F.lit(0))
    is_sealed = ~F.col("is_active")
    facts = segments.withColumn("_end", F.lead("base_offset").over(log))
    logs = facts.groupBy(*_LOG).agg(
        F.count("*").alias("segments"),
        F.sum("size_bytes").alias("bytes"),
        _bytes_where(is_sealed & (F.col("base_offset") < clean_offset)).alias("clean_bytes"),
        _bytes_where(is_sealed & (F.col("_end") > clean_offset)).alias("dirty_bytes"),
    )
    sealed = F.col("clean_bytes") + F.col("dirty_bytes")
    return logs.withColumn("dirty_ratio", F.when(sealed > 0, F.col("dirty_bytes") / sealed)).orderBy(*_LOG)


def size_class(value: Column) -> Column:
    """Return 0 for 0, else the number of bits of the value: n for 2**(n-1) to 2**n - 1."""
    return F.when(value <= 0, 0).otherwise(F.length(F.bin(value.cast("long")))).cast("int")


def payload_bytes() -> Column:
    """Return the bytes of key and value, 0 for a null."""
    return (F.coalesce(F.length("key"), F.lit(0)) + F.coalesce(F.length("value"), F.lit(0))).cast("long")


def _bytes_where(condition: Column) -> Column:
    return F.sum(F.when(condition, F.col("size_bytes")).otherwise(0))
