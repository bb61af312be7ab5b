"""Chooses between reading from a broker and reading segment files, by the options."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from barnabas.pipeline.reading.batches import ReadRules
from barnabas.pipeline.reading.options import ReadOptions
from barnabas.pipeline.reading.ranges import ReadableLog
from barnabas.pipeline.source.broker import BrokerLog, BrokerPart, read_from_broker
from barnabas.pipeline.worker_memory import keep_what_is_loaded


def open_log(options: ReadOptions) -> ReadableLog:
    """Open the log to plan reads from; the caller closes it. Raises the errors that `in_one_sentence` handles."""
    if options.client is not None:
        assert options.subscription is not None
        return BrokerLog(options.client, options.subscription, options)
    from barnabas.pipeline.segments.segment_log import SegmentLog

    return SegmentLog(options)


def read_part(options: ReadOptions, rules: ReadRules, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Return the rows of one part, in a task. Raises the errors that `in_one_sentence` handles."""
    keep_what_is_loaded()
    if isinstance(partition, BrokerPart):
        return read_from_broker(options, rules, partition)
    from barnabas.pipeline.segments.reading import SegmentPart, read_from_segment

    if isinstance(partition, SegmentPart):
        return read_from_segment(options, rules, partition)
    return iter(())  # Spark's own partition, for a read without parts
