"""Segment files for the pipeline's tests, written by the log engine, and their rows without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.pipeline.reading.options import parse_read_options
from barnabas.pipeline.reading.ranges import checked_range, ending_offsets, starting_offsets
from barnabas.pipeline.reading.schema import HEADERS, HEADERS_TYPE, projection_of, source_schema
from barnabas.pipeline.segments.reading import SegmentPart, read_from_segment
from barnabas.pipeline.segments.segment_log import SegmentLog
from barnabas.pipeline.source.batch import rules_of
from tests.support.storage.bench import LogBench, append, batch, log_config

__all__ = ["HEADERS", "HEADERS_TYPE", "projection_of", "read_rows", "segment_parts", "write_log"]


def write_log(
    log_dir: Path, batches: Sequence[Sequence[tuple[int, bytes | None, bytes | None]]], **config: Any
) -> tuple[LogBench, PartitionLog]:
    """Write a log with batches of (timestamp, key, value), and leave it open; `config` as for `log_config`."""
    bench = LogBench(log_dir)
    log = bench.open(log_config(**config))
    for records in batches:
        append(log, batch(*records))
    return bench, log


def segment_parts(options: Mapping[str, str]) -> list[SegmentPart]:
    """Return the parts of a batch read with these options."""
    read = parse_read_options(options, is_streaming=False)
    log = SegmentLog(read)
    partitions = log.partitions()
    starts, ends = starting_offsets(log, read, partitions), ending_offsets(log, read, partitions)
    earliest, latest = log.earliest(partitions), log.latest(partitions)
    ranges = [
        checked_range(read, each, starts[each], ends[each], earliest[each], latest[each]) for each in sorted(partitions)
    ]
    return list(log.parts(ranges, None))


def read_rows(path: Path | str, schema: Any = None, **options: str) -> list[dict[str, Any]]:
    """Return the rows of a batch read of files, in the order of parts."""
    given = {"path": str(path), **options}
    read = parse_read_options(given, is_streaming=False)
    include_headers = options.get("includeHeaders") == "true"
    rules = rules_of(read, schema or source_schema(include_headers=include_headers))
    return [
        row
        for part in segment_parts(given)
        for found in read_from_segment(read, rules, part)
        for row in found.to_pylist()
    ]
