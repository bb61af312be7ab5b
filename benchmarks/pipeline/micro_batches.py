"""Fixed cost of a micro-batch in one session: our source, Spark's Kafka source, Spark's rate source.

    idle    a trigger without new records: Spark requests the latest offset and runs no batch
    small   a batch of one record per partition, four partitions: planning, four tasks, and Spark's two checkpoint files

Milliseconds are medians of `triggerExecution` in the query's progress. Its part `addBatch` is planning and tasks;
`walCommit` and `commitOffsets` are Spark's own files. CPU is per batch, of the session's processes while the batches
ran. The cost of Spark's rate source is Spark's own share.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.brokers.system import cpu_seconds_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPIC = "rows"
PARTITIONS = 4
BATCHES = 25
FIRST_BATCHES = 5
"""Batches not counted, while the JVM compiles and workers start."""

TIMEOUT_S = 300.0
_STEPS = ("latestOffset", "queryPlanning", "addBatch", "walCommit", "commitOffsets")


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Results of one source: medians in ms by step, and CPU ms per batch by program (java, python)."""

    source: str
    kind: str
    step_ms: dict[str, float]
    cpu_ms: dict[str, float]

    def columns(self) -> dict[str, float]:
        """Return all figures by name."""
        cpu = {f"{program}_cpu_ms": value for program, value in self.cpu_ms.items()}
        return {f"{step}_ms": value for step, value in self.step_ms.items()} | cpu

    @property
    def trigger_ms(self) -> float:
        """Return the whole trigger's milliseconds."""
        return self.step_ms["triggerExecution"]


def measure_micro_batches(
    spark: SparkSession, bootstrap: str, records: int, home: Path, *, connector: bool
) -> list[MicroBatch]:
    """Measure all kinds for all sources, one after the other. Topic `rows` must contain `records` records."""
    spark.conf.set("spark.sql.streaming.noDataProgressEventInterval", "1")
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "1000")
    ends = records // PARTITIONS
    start = max(ends - BATCHES - FIRST_BATCHES - 50, 0)
    small = {
        "startingOffsets": json.dumps({TOPIC: {str(each): start for each in range(PARTITIONS)}}),
        "maxOffsetsPerTrigger": str(PARTITIONS),
    }
    topic = {"kafka.bootstrap.servers": bootstrap, "subscribe": TOPIC}
    rate = {"numPartitions": str(PARTITIONS)}
    cases: list[tuple[str, str, dict[str, str]]] = []
    for source in ("barnabas", "kafka") if connector else ("barnabas",):
        cases += [(source, "idle", {**topic, "startingOffsets": "latest"}), (source, "small", {**topic, **small})]
    cases += [("rate", "idle", {**rate, "rowsPerSecond": "1"})]
    cases += [("rate-micro-batch", "small", {**rate, "rowsPerBatch": str(PARTITIONS)})]
    found = []
    for source, kind, options in cases:
        checkpoint = home / f"micro-batches-{time.monotonic_ns()}"
        found.append(_measure(spark.readStream.format(source).options(**options).load(), source, kind, checkpoint))
    return found


def micro_batch_table(found: list[MicroBatch]) -> str:
    """Render steps and CPU; for the small batches also the ratio to the last source, Spark's own."""
    rows = [
        f"| micro-batch | ms | {' | '.join(_STEPS)} | CPU ms JVM | CPU ms Python | ms to Spark's rate |",
        "|---" * (len(_STEPS) + 5) + "|",
    ]
    for each in found:
        base = found[-1] if each.kind == found[-1].kind else None
        steps = " | ".join(f"{each.step_ms.get(step, 0):,.0f}" for step in _STEPS)
        cpu = " | ".join(f"{each.cpu_ms.get(program, 0):,.0f}" for program in ("java", "python"))
        ratio = "" if base is None else f"{each.trigger_ms / base.trigger_ms:.2f}"
        rows.append(f"| {each.kind}, {each.source} | {each.trigger_ms:,.0f} | {steps} | {cpu} | {ratio} |")
    return "\n".join(rows)


def _measure(frame: DataFrame, source: str, kind: str, checkpoint: Path) -> MicroBatch:
    interval = "100 milliseconds" if kind == "idle" else "0 seconds"
    query = (
        frame.writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime=interval)
        .start()
    )
    try:
        _await(query, kind, FIRST_BATCHES)
        before, first = spark_cpu_ms(), len(_batches(query, kind))
        batches = _await(query, kind, first + BATCHES)
        after = spark_cpu_ms()
    finally:
        query.stop()
    counted = batches[first:]
    steps = {step: median(each.get(step, 0) for each in counted) for step in (*_STEPS, "triggerExecution")}
    cpu = {program: (after[program] - before.get(program, 0.0)) / len(counted) for program in after}
    return MicroBatch(source, kind, steps, cpu)


def _batches(query: Any, kind: str) -> list[dict[str, float]]:
    """Return the progress reports of this kind so far; an idle trigger has added no batch."""
    durations = [dict(progress.durationMs) for progress in query.recentProgress]
    return [each for each in durations if ("addBatch" in each) == (kind == "small")]


def _await(query: Any, kind: str, count: int) -> list[dict[str, float]]:
    give_up = time.monotonic() + TIMEOUT_S
    while len(found := _batches(query, kind)) < count:
        if (failed := query.exception()) is not None:
            raise failed
        if time.monotonic() > give_up:
            raise RuntimeError(f"{len(found)} of {count} {kind} micro-batches after {TIMEOUT_S:.0f} s")
        time.sleep(0.2)
    return found


def spark_cpu_ms() -> dict[str, float]:
    """Return CPU by program of Spark's JVM and its Python workers, also ended ones, not of this process."""
    found: dict[str, float] = {}
    for pid, name in _descendants(os.getpid()):
        program = "java" if name == "java" else "python"
        try:
            found[program] = found.get(program, 0.0) + cpu_seconds_of(pid, with_ended_children=True) * 1000
        except FileNotFoundError:
            continue  # ended meanwhile
    return found


def _descendants(root: int) -> Iterator[tuple[int, str]]:
    """Return (pid, name) of the JVM below `root` and of the processes it started; excludes the broker."""
    children: dict[int, list[int]] = {}
    names: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(")")
        except (FileNotFoundError, ProcessLookupError):
            continue  # ended meanwhile
        names[int(entry.name)] = name
        children.setdefault(int(rest.split()[1]), []).append(int(entry.name))
    due = [child for child in children.get(root, []) if names[child] == "java"]
    while due:
        pid = due.pop()
        yield pid, names[pid]
        due += children.get(pid, [])
