"""The job replay writes an archive back into topics, with key, value, headers, timestamp, partition and order.

One task writes the records of a partition in the order of their offsets, so the copy has the order of the original;
offsets are new, without the gaps that compaction left. The files in `state` (the producers' identities,
sink/identity.py; and replay.json, the plan) make it resumable: run again after any failure, it adds only the missing
records. It replays the archive as of its start; records archived later need another replay.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from barnabas.pipeline.archive.files import ArchivedFile
from barnabas.pipeline.archive.manifest import DEFAULT_NAME, ArchiveState
from barnabas.pipeline.errors import OptionError, PipelineError
from barnabas.pipeline.jobs.summary import Summary
from barnabas.pipeline.reading.schema import source_schema
from barnabas.pipeline.state_files import StateFiles

_PLAN: Final = "replay.json"
_DONE: Final = "replayed.json"
"""Created once the whole plan is written. A day later the broker has expired the producer ids
(producer.id.expiration.ms), and a second run would add the records again."""
_PARTITIONS_PER_TASK: Final = 4
"""Approximate number for one task, which sorts their rows."""


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """`topics`: archived topic -> target topic; empty: all topics, under their own names.

    `state`: a directory for this replay alone. `sink`: options of `format("barnabas")`.
    """

    archive: str
    state: str
    sink: Mapping[str, str]
    topics: Mapping[str, str]
    name: str = DEFAULT_NAME


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """The plan of a replay, fixed at its first run: the archive's last micro-batch, topics, number of writing tasks."""

    archive: str
    name: str
    last_batch: int
    topics: dict[str, str]
    tasks: int


def replay_rows(archived: DataFrame, topics: Mapping[str, str], tasks: int) -> DataFrame:
    """Prepare rows for the sink: target topic, each partition in one task, ascending offsets."""
    names = sf.create_map(*(sf.lit(text) for pair in topics.items() for text in pair))
    return (
        archived.where(sf.col("topic").isin(list(topics)))
        .withColumn("topic", names[sf.col("topic")])
        .repartition(tasks, "topic", "partition")
        .sortWithinPartitions("topic", "partition", "offset")
        .select("key", "value", "headers", "topic", "partition", "timestamp")
    )


def run(spark: SparkSession, options: ReplayOptions) -> Summary:
    """Write the records that are not written yet. Raises PySparkException, PipelineError, OSError."""
    started = time.monotonic()
    state = ArchiveState(options.archive, options.name)
    plan = plan_of(state, options)
    files = [file for file in _files(state, plan.last_batch) if file.topic in plan.topics]
    done = StateFiles(options.state)
    details: dict[str, int | float | str] = {"topics": len(plan.topics), "from": state.archive}
    if _DONE in done.names():
        details["added"] = f"nothing: {options.state} marks this replay as finished"
    else:
        _write(spark, options, plan, [f"{state.archive}/{file.final}" for file in files])
        done.create(_DONE, b"{}")
    return Summary(
        "replay",
        records=sum(file.records for file in files),
        size_bytes=sum(file.size_bytes for file in files),
        files=len(files),
        seconds=time.monotonic() - started,
        details=details,
    )


def _write(spark: SparkSession, options: ReplayOptions, plan: ReplayPlan, paths: Sequence[str]) -> None:
    # With a known schema Spark reads no footer to infer one.
    archived = spark.read.schema(source_schema(include_headers=True)).parquet(*paths)
    writer = replay_rows(archived, plan.topics, plan.tasks).write.format("barnabas").options(**options.sink)
    # Adaptive execution would merge small tasks; the identities belong to exactly plan.tasks tasks.
    adaptive = spark.conf.get("spark.sql.adaptive.enabled")
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        writer.option("checkpointLocation", options.state).mode("append").save()
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", adaptive or "true")


def plan_of(state: ArchiveState, options: ReplayOptions) -> ReplayPlan:
    """Load the stored plan; at the first run create and store it. Raises OptionError, PipelineError, OSError."""
    kept = StateFiles(options.state)
    if _PLAN in kept.names():
        plan = _read_plan(kept.read(_PLAN), options.state)
        if (plan.archive, plan.name) != (state.archive, state.name) or (
            options.topics and plan.topics != dict(options.topics)
        ):
            raise OptionError(
                f"{options.state} is the state of another replay, from {plan.archive} to "
                f"{', '.join(plan.topics.values())}: use another state directory"
            )
        return plan
    batches = state.batches()
    if not batches:
        raise PipelineError(f"{state.archive}: there is no archive called {state.name!r}, or it is still empty")
    state.finish(state.files(batches[-1]))
    partitions = {(file.topic, file.partition) for file in _files(state, batches[-1])}
    topics = dict(options.topics) or {topic: topic for topic, _ in sorted(partitions)}
    if len(set(topics.values())) < len(topics):
        raise OptionError("two archived topics cannot be replayed into one: their order would be undefined")
    missing = sorted(set(topics) - {topic for topic, _ in partitions})
    if missing:
        raise OptionError(f"{state.archive} has no topic {missing[0]!r}")
    if not partitions:
        raise PipelineError(f"{state.archive} contains no records")
    chosen = sum(1 for topic, _ in partitions if topic in topics)
    plan = ReplayPlan(state.archive, state.name, batches[-1], topics, -(-chosen // _PARTITIONS_PER_TASK))
    content = {name: getattr(plan, name) for name in ("archive", "name", "last_batch", "topics", "tasks")}
    return _read_plan(kept.create(_PLAN, json.dumps(content).encode()), options.state)


def _files(state: ArchiveState, last_batch: int) -> list[ArchivedFile]:
    return [file for batch in state.batches() if batch <= last_batch for file in state.files(batch)]


def _read_plan(content: bytes, where: str) -> ReplayPlan:
    try:
        fields: dict[str, Any] = json.loads(content)
        return ReplayPlan(**fields)
    except (ValueError, TypeError) as error:
        raise PipelineError(f"{where}/{_PLAN} cannot be read: {error}") from error
