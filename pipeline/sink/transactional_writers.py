"""The writers of `format("barnabas")` with `exactlyOnce=transactions`: a batch, and the micro-batches of a stream.

Spark creates a writer on the driver for each write and pickles it once the write begins; for the commit of a
micro-batch it creates another one, in another process, which it does not pickle. So a run begins when the writer is
pickled: nowhere else does the driver run our code before the tasks start and only then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from barnabas.pipeline.sink.options import SinkOptions
from barnabas.pipeline.sink.task_properties import micro_batch_of_task
from barnabas.pipeline.sink.transactional_write import TransactionalWrite, TransactionCommit

if TYPE_CHECKING:
    import pyarrow as pa

_ONLY_BATCH = 0


class TransactionalBatchWriter(DataSourceArrowWriter):
    """`df.write.format("barnabas").option("exactlyOnce", "transactions").mode("append").save()`."""

    def __init__(self, options: SinkOptions) -> None:
        self._write = TransactionalWrite(options)

    def __getstate__(self) -> dict[str, Any]:
        self._write.begin()
        return self.__dict__

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TransactionCommit:
        """Write one task's rows, on an executor."""
        return self._write.write(iterator, _ONLY_BATCH, None)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit the tasks' transactions, on the driver."""
        self._write.commit(messages, _ONLY_BATCH)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Abort the tasks' transactions, on the driver."""
        self._write.abort(messages)


class TransactionalStreamWriter(DataSourceStreamArrowWriter):
    """`df.writeStream.format("barnabas").option("exactlyOnce", "transactions").start()`."""

    def __init__(self, options: SinkOptions) -> None:
        self._write = TransactionalWrite(options)

    def __getstate__(self) -> dict[str, Any]:
        self._write.begin()
        return self.__dict__

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TransactionCommit:
        """Write one task's rows of one micro-batch, on an executor."""
        batch, query = micro_batch_of_task()
        return self._write.write(iterator, batch, query)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Commit the tasks' transactions, on the driver."""
        self._write.commit(messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Abort the tasks' transactions, on the driver."""
        self._write.abort(messages)
