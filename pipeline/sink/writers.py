"""The writers of `format("barnabas")`: a batch, and the micro-batches of a stream.

Both are pickled to the executors, where `write` runs once for each task. When it returns, the broker has acknowledged
all records, so `commit` has nothing to do, and `abort` cannot remove anything.

Batch: at least once, as Spark's Kafka sink; with the option checkpointLocation it can be run again after a failure and
adds only the missing records. Stream: a replayed micro-batch adds no record twice (sink/task.py lists the conditions).
With exactlyOnce=transactions the writers are those of transactional_writers.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from barnabas.pipeline.errors import OptionError, in_one_sentence
from barnabas.pipeline.sink.options import SinkOptions, sink_options
from barnabas.pipeline.sink.rows import SinkRecord, ensure_writable, records_of
from barnabas.pipeline.sink.task_properties import micro_batch_of_task
from barnabas.pipeline.worker_memory import keep_what_is_loaded

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_ONLY_BATCH = 0


@dataclass(frozen=True)
class SinkCommit(WriterCommitMessage):
    """Records that one task sent, and those that an earlier attempt had stored."""

    sent: int
    already_there: int


class BatchWriter(DataSourceArrowWriter):
    """`df.write.format("barnabas").mode("append").save()`."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> SinkCommit:
        """Write one task's rows, on an executor."""
        return _write(self._options, iterator, _ONLY_BATCH, None)


class StreamWriter(DataSourceStreamArrowWriter):
    """`df.writeStream.format("barnabas").start()`."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> SinkCommit:
        """Write one task's rows of one micro-batch, on an executor."""
        batch_id, query = micro_batch_of_task()
        return _write(self._options, iterator, batch_id, query)


def make_batch_writer(given: Mapping[str, str], schema: StructType, *, overwrite: bool) -> DataSourceArrowWriter:
    """Create the writer of a batch. Raises OptionError, SchemaError."""
    if overwrite:
        raise OptionError("mode overwrite is not supported: a log is append-only; use mode append")
    options = sink_options(given, streaming=False)
    ensure_writable(schema, options.topic)
    if options.transactions:
        from barnabas.pipeline.sink.transactional_writers import TransactionalBatchWriter

        return TransactionalBatchWriter(options)
    return BatchWriter(options)


def make_stream_writer(given: Mapping[str, str], schema: StructType, *, overwrite: bool) -> DataSourceStreamArrowWriter:
    """Create the writer of a stream. Raises OptionError, SchemaError."""
    if overwrite:
        raise OptionError("output mode complete is not supported: a log is append-only; use append")
    options = sink_options(given, streaming=True)
    ensure_writable(schema, options.topic)
    if options.transactions:
        from barnabas.pipeline.sink.transactional_writers import TransactionalStreamWriter

        return TransactionalStreamWriter(options)
    return StreamWriter(options)


def _write(options: SinkOptions, batches: Iterator[pa.RecordBatch], batch_id: int, query: str | None) -> SinkCommit:
    import uvloop

    from barnabas.pipeline.sink.identity import TaskIdentity
    from barnabas.pipeline.sink.task import send_once, send_what_is_missing

    keep_what_is_loaded()
    context = TaskContext.get()
    task = 0 if context is None else context.partitionId()
    with in_one_sentence():
        records: Iterator[SinkRecord] = _records(batches, options.topic)
        first = next(records, None)
        if first is None:  # no rows: no connection
            return SinkCommit(0, 0)
        records = itertools.chain((first,), records)
        if options.checkpoint is None:
            written = uvloop.run(send_once(options.producer, records))
        else:
            kept = TaskIdentity(options.checkpoint, task, batch_id, query)
            written = uvloop.run(send_what_is_missing(options.producer, records, kept, task))
    return SinkCommit(written.sent, written.already_there)


def _records(batches: Iterator[pa.RecordBatch], topic: str | None) -> Iterator[SinkRecord]:
    for batch in batches:
        yield from records_of(batch, topic)
