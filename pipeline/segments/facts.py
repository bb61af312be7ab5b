"""Segments as rows, from file sizes and the last entries of time indexes; records are not read.

    log_dir, directory   string   the data directory, and the log's own
    topic                string
    partition            int
    base_offset          long
    size_bytes           long     of the .log
    largest_timestamp    long     ms; for a segment without timestamps its modification time
    is_active            boolean  the newest of its log, which the broker appends to
    clean_offset         long     of the log: compacted up to here (cleaner-offset-checkpoint); null: not at all

A sealed segment's time index ends with its largest timestamp, so its batches are not read. For the active segment the
headers after the last index entry are read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from barnabas.broker.storage.files.checkpoint_file import CLEANER_CHECKPOINT, OffsetCheckpointFile
from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.files.file_names import LOG_SUFFIX, TIME_INDEX_SUFFIX, FileKind, file_name, parse_file_name
from barnabas.broker.storage.files.open_files import FileHandle
from barnabas.broker.storage.inspection.index_entries import read_time_index
from barnabas.broker.storage.inspection.positions import position_of_offset
from barnabas.broker.storage.segment.scan import iter_headers
from barnabas.pipeline.segments.log_files import StoredLog, shared_out
from barnabas.protocol.records.errors import CorruptRecordError
from barnabas.protocol.topic_partition import TopicPartition

SEGMENT_SCHEMA = (
    "log_dir string, directory string, topic string, partition int, base_offset long, size_bytes long, "
    "largest_timestamp long, is_active boolean, clean_offset long"
)


class SegmentFacts(NamedTuple):
    """One segment; the fields are the columns above."""

    log_dir: str
    directory: str
    topic: str
    partition: int
    base_offset: int
    size_bytes: int
    largest_timestamp: int
    is_active: bool
    clean_offset: int | None


def segment_facts(spark: SparkSession, logs: Sequence[StoredLog]) -> DataFrame:
    """Return the segments of these logs, read by tasks; all rows of a log are in one Spark partition."""
    shared = shared_out(spark, logs)
    frame = spark.createDataFrame(shared.flatMap(facts_of), SEGMENT_SCHEMA, verifySchema=False)
    # Windows over a log need this; otherwise they shuffle a few rows into spark.sql.shuffle.partitions tasks.
    return frame.repartition(shared.getNumPartitions(), "topic", "partition")


def segment_bases(directory: Path) -> list[int]:
    """Return the base offsets of a log's segments, ascending. Raises OSError."""
    parsed = (parse_file_name(name) for name in os.listdir(directory))
    return sorted(name.offset for name in parsed if name is not None and name.kind is FileKind.LOG and not name.stage)


def facts_of(log: StoredLog) -> Iterator[SegmentFacts]:
    """Yield the segments of one log by base offset; none if the log was deleted meanwhile. Raises OSError."""
    directory = Path(log.directory)
    clean_offset = _clean_offsets(log.log_dir).get(TopicPartition(log.topic, log.partition))
    try:
        bases = segment_bases(directory)
    except FileNotFoundError:
        return
    for base_offset in bases:
        path = directory / file_name(base_offset, LOG_SUFFIX)
        is_active = base_offset == bases[-1]
        try:
            stat = path.stat()
            largest = _largest_timestamp(path, base_offset, is_active=is_active, size=stat.st_size)
        except FileNotFoundError:
            continue  # deleted by retention meanwhile
        timestamp = largest if largest >= 0 else stat.st_mtime_ns // 1_000_000
        yield SegmentFacts(*log, base_offset, stat.st_size, timestamp, is_active, clean_offset)


def _largest_timestamp(path: Path, base_offset: int, *, is_active: bool, size: int) -> int:
    """Return the timestamp that retention uses; -1 when no batch has one. Raises OSError."""
    largest, position = -1, 0
    try:
        entries = read_time_index(path.with_suffix(TIME_INDEX_SUFFIX), base_offset).entries
    except FileNotFoundError:
        entries = []
    if entries:
        largest = entries[-1].timestamp
        if not is_active:
            return largest
        position = position_of_offset(path, base_offset, entries[-1].offset)
    try:
        for _, header in iter_headers(FileHandle(os.open(path, os.O_RDONLY | os.O_CLOEXEC)), position, size):
            largest = max(largest, header.max_timestamp)
    except CorruptRecordError:
        pass  # batches before the damage count; the job `audit` reports the damage
    return largest


@lru_cache(maxsize=64)
def _clean_offsets(log_dir: str) -> dict[TopicPartition, int]:
    """Read a data directory's cleaner checkpoint; without a readable one all is dirty, as in a broker."""
    try:
        return OffsetCheckpointFile(Path(log_dir) / CLEANER_CHECKPOINT).read()
    except CorruptFileError:
        return {}
