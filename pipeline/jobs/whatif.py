"""The job whatif computes what retention and compaction settings would free in existing logs, without applying them.

Retention is exact to the byte, because it deletes whole segments: the broker's rules (broker/storage/log/retention.py)
are repeated here as windows over `segment_facts`. Compaction is an estimate: the records that a cleaning would remove
are counted exactly, by key; their bytes on disk are taken in proportion to the bytes of keys and values, because a
batch may be compressed. Open transactions, which limit the cleaner, cannot be determined from files and are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from barnabas.config.log_config import LogConfig
from barnabas.pipeline.jobs.stats import payload_bytes

POLICY_SCHEMA = (
    "topic string, is_delete boolean, is_compact boolean, retention_ms long, retention_bytes long, "
    "min_compaction_lag_ms long, min_cleanable_dirty_ratio double"
)
SIZE_RULE = "retention.bytes"
TIME_RULE = "retention.ms"

RECORD_OVERHEAD_BYTES = 7
"""Overhead of a typical record: length, attributes, two deltas, two sizes and the header count, as varints."""

_NEVER_MS = 1 << 61
"""Upper bound of limits and timestamps: the sum of two still fits a long."""
_LOG = ("topic", "partition")


class TopicPolicy(NamedTuple):
    """A topic's hypothetical settings; the fields are the columns of POLICY_SCHEMA."""

    topic: str
    is_delete: bool
    is_compact: bool
    retention_ms: int
    retention_bytes: int
    min_compaction_lag_ms: int
    min_cleanable_dirty_ratio: float

    @classmethod
    def of(cls, topic: str, config: LogConfig) -> TopicPolicy:
        """Create the policy of a log's configuration."""
        return cls(
            topic,
            config.delete,
            config.compact,
            config.retention_ms,
            config.retention_bytes,
            config.min_compaction_lag_ms,
            config.min_cleanable_dirty_ratio,
        )


def policies_frame(spark: SparkSession, policies: Iterable[TopicPolicy]) -> DataFrame:
    """Return the policies as a DataFrame, one row per topic."""
    return spark.createDataFrame([tuple(policy) for policy in policies], POLICY_SCHEMA)


def retention_effect(segments: DataFrame, policies: DataFrame, now_ms: int) -> DataFrame:
    """Add two columns to `segment_facts`; topics without a policy are left out.

    freed_by   string   the rule that deletes the segment now: retention.bytes, retention.ms, or null
    goes_at    long     ms: time of its deletion if nothing more is written; null: never
    """
    log = Window.partitionBy(*_LOG)
    up_to_here = log.orderBy("base_offset").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    never = F.lit(_NEVER_MS)
    keeps_by_time = (F.col("retention_ms") < 0) | (F.col("retention_ms") >= never)
    # A segment is deleted only with all before it: by size while the sum of sizes fits the excess, by time when the
    # youngest up to it has expired.
    expires_at = F.least("largest_timestamp", never) + F.least("retention_ms", never) + 1
    excess_bytes = F.sum("size_bytes").over(log) - F.col("retention_bytes")
    is_too_much = (F.col("retention_bytes") >= 0) & (F.sum("size_bytes").over(up_to_here) <= excess_bytes)
    may_go = F.col("is_delete") & ~(F.col("is_active") & (F.col("size_bytes") == 0))
    goes_by_time_at = F.when(may_go & ~keeps_by_time, F.max(expires_at).over(up_to_here))
    return (
        segments.join(F.broadcast(policies), "topic")
        .withColumn("_is_too_much", may_go & is_too_much)
        .withColumn("_expires_at", goes_by_time_at)
        .withColumn(
            "freed_by",
            F.when(F.col("_is_too_much"), SIZE_RULE).when(F.col("_expires_at") <= now_ms, TIME_RULE),
        )
        .withColumn("goes_at", F.when(F.col("freed_by").isNotNull(), F.lit(now_ms)).otherwise(F.col("_expires_at")))
        .select(*segments.columns, "freed_by", "goes_at")
    )


def freed_by_topic(effects: DataFrame) -> DataFrame:
    """Sum `retention_effect`: topic, segments, size_bytes, freed_segments, freed_by_size, freed_by_time (bytes)."""
    return effects.groupBy("topic").agg(
        F.count("*").alias("segments"),
        F.sum("size_bytes").alias("size_bytes"),
        F.count("freed_by").alias("freed_segments"),
        _bytes_where(F.col("freed_by") == SIZE_RULE).alias("freed_by_size"),
        _bytes_where(F.col("freed_by") == TIME_RULE).alias("freed_by_time"),
    )


def freed_over_time(effects: DataFrame, now_ms: int, step_ms: int, steps: int) -> DataFrame:
    """Return topic, step, freed_bytes: bytes freed between the previous step and now + step * step_ms.

    Steps count from 0 (now) to `steps`; segments deleted later, or never, are left out.
    """
    step = F.ceil((F.col("goes_at") - now_ms) / step_ms).cast("int")
    return (
        effects.where(F.col("goes_at") <= now_ms + step_ms * steps)
        .groupBy("topic", step.alias("step"))
        .agg(F.sum("size_bytes").alias("freed_bytes"))
    )


def cleanable_parts(effects: DataFrame, policies: DataFrame, now_ms: int) -> DataFrame:
    """Return the part of each compacted log that cleaning would process after retention.

    topic, partition
    first_offset         long    of the first segment that retention keeps
    first_uncleanable    long    base offset of the active segment, or of the first dirty one with a record that is
                                 younger than min.compaction.lag.ms: the cleaner's offset map ends before it
    cleanable_bytes      long    of the segments between the two
    dirty_bytes          long    of those that have not been cleaned yet (cleaner-offset-checkpoint)
    is_due               boolean dirtier than min.cleanable.dirty.ratio
    """
    log = Window.partitionBy(*_LOG).orderBy("base_offset")
    end = F.coalesce(F.lead("base_offset").over(log), F.lit((1 << 63) - 1))
    is_dirty = end > F.coalesce(F.col("clean_offset"), F.lit(0))
    is_young = is_dirty & (F.col("min_compaction_lag_ms") > 0)
    is_young &= F.col("largest_timestamp") > now_ms - F.least("min_compaction_lag_ms", F.lit(_NEVER_MS))
    left = (
        effects.where(F.col("freed_by").isNull())
        .join(F.broadcast(policies.where("is_compact")), "topic")
        .withColumn("is_dirty", is_dirty)
        .withColumn("first_uncleanable", F.when(F.col("is_active") | is_young, F.col("base_offset")))
        .withColumn("first_uncleanable", F.min("first_uncleanable").over(Window.partitionBy(*_LOG)))
    )
    is_cleanable = F.col("base_offset") < F.col("first_uncleanable")
    parts = left.groupBy(*_LOG, "first_uncleanable", "min_cleanable_dirty_ratio").agg(
        F.min("base_offset").alias("first_offset"),
        _bytes_where(is_cleanable).alias("cleanable_bytes"),
        _bytes_where(is_cleanable & F.col("is_dirty")).alias("dirty_bytes"),
    )
    is_due = (F.col("dirty_bytes") / F.col("cleanable_bytes")) > F.col("min_cleanable_dirty_ratio")
    return parts.select(
        *_LOG,
        "first_offset",
        "first_uncleanable",
        "cleanable_bytes",
        "dirty_bytes",
        F.when(F.col("cleanable_bytes") > 0, is_due).otherwise(F.lit(False)).alias("is_due"),
    )


def compaction_effect(records: DataFrame, parts: DataFrame) -> DataFrame:
    """Estimate what one cleaning of each of `cleanable_parts` would drop.

    `records` needs topic, partition, offset, key, value.

    topic, partition, cleanable_bytes, dirty_bytes, is_due    from `parts`
    records              long    in the cleanable part
    records_gone         long    superseded records, and records without a key
    bytes_gone           long    of the segments, estimated
    tombstones           long    removed later, after delete.retention.ms
    tombstone_bytes      long    estimated
    """
    is_latest_deleted = F.max_by(F.col("value").isNull(), F.col("offset"))
    payload = payload_bytes() + RECORD_OVERHEAD_BYTES
    keys = (
        records.select(*_LOG, "offset", "key", "value")
        .join(F.broadcast(parts.select(*_LOG, "first_offset", "first_uncleanable")), [*_LOG])
        .where((F.col("offset") >= F.col("first_offset")) & (F.col("offset") < F.col("first_uncleanable")))
        .groupBy(*_LOG, "key")
        .agg(
            F.count("*").alias("records"),
            F.sum(payload).alias("payload"),
            F.max_by(payload, F.col("offset")).alias("latest"),
            is_latest_deleted.alias("is_deleted"),
        )
    )
    has_key = F.col("key").isNotNull()
    is_tombstone = has_key & F.col("is_deleted")
    logs = keys.groupBy(*_LOG).agg(
        F.sum("records").alias("records"),
        F.sum(F.when(has_key, F.col("records") - 1).otherwise(F.col("records"))).alias("records_gone"),
        F.sum("payload").alias("_payload"),
        F.sum(F.when(has_key, F.col("payload") - F.col("latest")).otherwise(F.col("payload"))).alias("_gone"),
        F.sum(is_tombstone.cast("long")).alias("tombstones"),
        F.sum(F.when(is_tombstone, F.col("latest")).otherwise(0)).alias("_tombstones"),
    )
    share = F.col("cleanable_bytes") / F.col("_payload")
    return (
        parts.join(F.broadcast(logs), [*_LOG], "left")
        .withColumn("bytes_gone", F.round(F.col("_gone") * share).cast("long"))
        .withColumn("tombstone_bytes", F.round(F.col("_tombstones") * share).cast("long"))
        .select(*_LOG, "cleanable_bytes", "dirty_bytes", "is_due", *map(_or_zero, _COUNTED))
    )


_COUNTED = ("records", "records_gone", "bytes_gone", "tombstones", "tombstone_bytes")


def _or_zero(name: str) -> Column:
    return F.coalesce(F.col(name), F.lit(0)).alias(name)


def _bytes_where(condition: Column) -> Column:
    return F.sum(F.when(condition, F.col("size_bytes")).otherwise(0))
