"""Stored batches as rows, one for each batch header; records are not read.

    topic          string
    partition      int
    segment        long        base offset of the segment
    path           string      of the .log
    position       long        byte in the file
    base_offset    long
    last_offset    long        as in the header, even if compaction removed that record
    records        int         -1 for a compressed message set of format 0 or 1: its header does not count them
    size_bytes     int
    max_timestamp  long        ms, -1 without one
    codec          string      none, gzip, snappy, lz4, zstd; null for an unknown id
    is_control     boolean     a transaction marker, which consumers skip

Headers are read in small pieces, so that a segment of large batches costs little more than its headers. At damage the
segment's rows end without an error; the job `audit` reports damage.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.files.file_names import LOG_SUFFIX, file_name
from barnabas.broker.storage.files.open_files import FileHandle
from barnabas.broker.storage.segment.scan import StoredEntry, first_offset_of, iter_headers
from barnabas.pipeline.segments.facts import SegmentFacts, facts_of
from barnabas.pipeline.segments.log_files import StoredLog, shared_out
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.errors import CorruptRecordError, InvalidRecordError

BATCH_SCHEMA = (
    "topic string, partition int, segment long, path string, position long, base_offset long, last_offset long, "
    "records int, size_bytes int, max_timestamp long, codec string, is_control boolean"
)


class BatchFacts(NamedTuple):
    """One batch; the fields are the columns above."""

    topic: str
    partition: int
    segment: int
    path: str
    position: int
    base_offset: int
    last_offset: int
    records: int
    size_bytes: int
    max_timestamp: int
    codec: str | None
    is_control: bool


def batch_facts(spark: SparkSession, logs: Sequence[StoredLog]) -> DataFrame:
    """Return the batches of these logs; a task reads whole segments."""
    segments = shared_out(spark, logs).flatMap(facts_of)
    tasks = max(segments.getNumPartitions(), spark.sparkContext.defaultParallelism)
    return spark.createDataFrame(segments.repartition(tasks).flatMap(batches_of), BATCH_SCHEMA, verifySchema=False)


def batches_of(segment: SegmentFacts) -> Iterator[BatchFacts]:
    """Yield the batches of one segment, by position. Raises OSError."""
    path = Path(segment.directory) / file_name(segment.base_offset, LOG_SUFFIX)
    try:
        file = FileHandle(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    except FileNotFoundError:
        return  # retention was faster
    try:
        for position, header in iter_headers(file, 0, segment.size_bytes):
            yield _facts(segment, path, file, position, header)
    except (CorruptRecordError, StorageError):
        return


def _facts(segment: SegmentFacts, path: Path, file: FileHandle, position: int, header: StoredEntry) -> BatchFacts:
    return BatchFacts(
        topic=segment.topic,
        partition=segment.partition,
        segment=segment.base_offset,
        path=str(path),
        position=position,
        base_offset=first_offset_of(file, position, header),
        last_offset=header.last_offset,
        records=header.record_count if isinstance(header, RecordBatch) else -1 if header.is_wrapper else 1,
        size_bytes=header.size_bytes,
        max_timestamp=header.max_timestamp,
        codec=_codec(header),
        is_control=isinstance(header, RecordBatch) and header.is_control,
    )


def _codec(header: StoredEntry) -> str | None:
    try:
        return header.codec.name.lower()
    except (InvalidRecordError, CorruptRecordError):
        return None
