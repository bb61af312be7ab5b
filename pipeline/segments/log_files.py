"""The logs of data directories, and their distribution among the executors of a job.

The directories must have the same path on every executor (one machine, or a shared file system). Deleted (`-delete`),
future (`-future`) and stray logs are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from pyspark import RDD
from pyspark.sql import SparkSession

from barnabas.broker.storage.files.partition_directory import DirectoryKind, parse_directory_name
from barnabas.pipeline.errors import PipelineError
from barnabas.protocol.topic_name import INTERNAL_PREFIX

_TASKS_PER_CORE = 8


class StoredLog(NamedTuple):
    """One partition's directory, and the data directory that contains it."""

    log_dir: str
    directory: str
    topic: str
    partition: int


class NoLogsError(PipelineError):
    """A named topic, or any log at all, is missing; the message names directories and topics."""


def find_logs(log_dirs: Sequence[Path], topics: Collection[str] = (), *, internal: bool = False) -> list[StoredLog]:
    """Return the logs of these topics in order; without topics all logs, Kafka's own (`__...`) only with `internal`.

    Raises OSError for an unreadable directory, NoLogsError when a named topic, or any log at all, is missing.
    """
    found = []
    for log_dir in log_dirs:
        for path in log_dir.iterdir():
            parsed = parse_directory_name(path.name) if path.is_dir() else None
            if parsed is None or parsed.kind is not DirectoryKind.CURRENT:
                continue
            topic, partition = parsed.topic_partition
            if topic in topics or (not topics and (internal or not topic.startswith(INTERNAL_PREFIX))):
                found.append(StoredLog(str(log_dir.absolute()), str(path.absolute()), topic, partition))
    missing = sorted(set(topics) - {log.topic for log in found})
    places = ", ".join(str(log_dir) for log_dir in log_dirs)
    if missing:
        raise NoLogsError(f"no log of topic {', '.join(missing)} in {places}")
    if not found:
        raise NoLogsError(f"no partition's directory (<topic>-<partition>) in {places}")
    return sorted(found, key=lambda log: (log.topic, log.partition, log.directory))


def shared_out(spark: SparkSession, logs: Sequence[StoredLog]) -> RDD[StoredLog]:
    """Distribute the logs, a few to a task, so that one large log does not delay the others."""
    tasks = min(len(logs), _TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
    # RDDs, because DataFrame.mapInArrow requires pandas to be installed.
    return spark.sparkContext.parallelize(logs, max(tasks, 1))
