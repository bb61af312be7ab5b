"""One write of `exactlyOnce=transactions`, a batch or a micro-batch, on the driver and in its tasks.

Each task attempt writes its rows in a transaction and leaves it open. When all tasks have succeeded, the driver stores
the list of their transactions in the checkpoint, and commits these. That list is the decision: after a crash the next
driver commits it, or without it aborts all, before its first task starts. A micro-batch that Spark replays although it
is decided is read again, because stateful operators store their state as their rows are read, and is not written.

Without a checkpoint (batch writes only) nothing finishes the transactions of a driver that dies: the broker aborts them
after their timeout. If it dies while it commits, some of them are committed.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from barnabas.clients.producer.prepared import PreparedTransaction
from barnabas.pipeline.errors import PipelineError, WriteNotBegunError, in_one_sentence
from barnabas.pipeline.sink.decisions import Ending, abort_open_runs, commit_run, end_all, recover
from barnabas.pipeline.sink.identity import name_of_query
from barnabas.pipeline.sink.options import SinkOptions
from barnabas.pipeline.sink.rows import records_of
from barnabas.pipeline.sink.run_files import Commit, RunFiles, TransactionFiles, WrittenBatch
from barnabas.pipeline.sink.target import target_of
from barnabas.pipeline.worker_memory import keep_what_is_loaded

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class TransactionCommit(WriterCommitMessage):
    """What one task returns.

    `transaction` is open, None without rows. `free_id`: a transactional id that this attempt has and uses no more, for
    the next micro-batch. `already_there`: the number of rows if the batch was decided before.
    """

    run: str
    query: str | None
    task: int
    transaction: PreparedTransaction | None = None
    free_id: str | None = None
    sent: int = 0
    already_there: int = 0


class TransactionalWrite:
    """Created on the driver, pickled to the tasks after `begin`. Its methods raise PipelineErrors of one sentence."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._run = ""
        self._cluster = ""
        self._written: WrittenBatch | None = None
        self._free_ids: dict[int, str] = {}

    def begin(self) -> None:
        """Finish what earlier drivers left, and begin a run. Later calls do nothing. Raises WriteNotBegunError."""
        if self._run:
            return
        files = self._files()
        if files is None:
            self._run = uuid.uuid4().hex
            return
        try:
            with in_one_sentence():
                files.ensure_no_sequences()
                self._run, self._cluster = _run(self._begin(files))
                self._written = files.last_written()
                self._free_ids = files.take_free_ids(self._run)
        except PipelineError as error:
            raise WriteNotBegunError(str(error)) from None

    async def _begin(self, files: TransactionFiles) -> tuple[str, str]:
        async with target_of(self._options).ending() as ending:
            await recover(files, ending)
            run = uuid.uuid4().hex
            files.run(run).begin(ending.cluster_id)
            return run, ending.cluster_id

    def write(self, batches: Iterator[pa.RecordBatch], batch: int, query: str | None) -> TransactionCommit:
        """Write one task's rows and leave the transaction open, on an executor."""
        from barnabas.pipeline.sink.transactional_task import register_attempt

        keep_what_is_loaded()
        context = TaskContext.get()
        task = 0 if context is None else context.partitionId()
        run, name = self._run_files(), uuid.uuid4().hex
        with in_one_sentence():
            if self._is_written(batch, query):
                rows = sum(each.num_rows for each in batches)
                return TransactionCommit(self._run, query, task, already_there=rows)
            records = itertools.chain.from_iterable(records_of(each, self._options.topic) for each in batches)
            first = next(records, None)
            free_id = self._free_ids.get(task)
            if first is None:  # no rows: no transaction, but the id is kept for the next micro-batch
                is_mine = run is not None and free_id is not None and run.claim(task, name, free_id)
                return TransactionCommit(self._run, query, task, free_id=free_id if is_mine else None)
            own_id = f"spark-{query or 'batch'}-{self._run}-{task}-{name}"
            attempt = register_attempt(run, task, name, own_id, free_id)
            records = itertools.chain((first,), records)
            prepared = target_of(self._options).write(records, attempt, run)
        if self._cluster not in ("", prepared.cluster):
            raise PipelineError(
                f"kafka.bootstrap.servers is cluster {self._cluster} for the driver, but {prepared.cluster} for a task"
            )
        return TransactionCommit(self._run, query, task, prepared.transaction, attempt.transactional_id, prepared.sent)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batch: int) -> None:
        """Decide to commit the tasks' transactions, and commit them, on the driver."""
        returned = [each for each in messages if isinstance(each, TransactionCommit)]
        if not returned:
            return
        with in_one_sentence():
            _run(self._commit(returned, batch))

    async def _commit(self, returned: Sequence[TransactionCommit], batch: int) -> None:
        transactions = tuple(each.transaction for each in returned if each.transaction is not None)
        one = returned[0]
        files = self._files()
        async with target_of(self._options).ending() as ending:
            if files is None:
                await end_all(ending, transactions, ())
                await self._abort_unregistered(ending)
            elif any(each.already_there for each in returned):
                await abort_open_runs(files, ending)
            else:
                free = {each.task: each.free_id for each in returned if each.free_id is not None}
                written = WrittenBatch(batch, one.query, ending.cluster_id, free)
                await commit_run(files, files.run(one.run), Commit(written, transactions), ending)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Abort the transactions of all attempts, on the driver."""
        with in_one_sentence():
            _run(self._abort([each for each in messages if isinstance(each, TransactionCommit)]))

    async def _abort(self, returned: Sequence[TransactionCommit]) -> None:
        files = self._files()
        async with target_of(self._options).ending() as ending:
            if files is not None:
                await abort_open_runs(files, ending)
            else:
                known = (each.transaction.transactional_id for each in returned if each.transaction is not None)
                await end_all(ending, (), known)
                await self._abort_unregistered(ending)

    async def _abort_unregistered(self, ending: Ending) -> None:
        """Abort the transactions of attempts that returned nothing: without a checkpoint they are not registered.

        An attempt that begins its transaction later, because Spark has not stopped it yet, is ended by its timeout.
        """
        await end_all(ending, (), await ending.open_ids(f"spark-.*-{self._run}-.*"))

    def _files(self) -> TransactionFiles | None:
        checkpoint = self._options.checkpoint
        return None if checkpoint is None else TransactionFiles(checkpoint)

    def _run_files(self) -> RunFiles | None:
        files = self._files()
        return None if files is None else files.run(self._run)

    def _is_written(self, batch: int, query: str | None) -> bool:
        """Whether the batch is committed already. Raises PipelineError for a checkpoint of another query or cluster."""
        written = self._written
        if written is None:
            return False
        files = self._files()
        where = "" if files is None else files.location
        if written.query != query:
            raise PipelineError(
                f"{where} belongs to {name_of_query(written.query)}, this is {name_of_query(query)}, whose batches "
                "would be mistaken for the other's: give each its own checkpoint, and start this one with an empty "
                "checkpoint"
            )
        if written.cluster != self._cluster:
            raise PipelineError(
                f"{where} belongs to cluster {written.cluster}, but kafka.bootstrap.servers is cluster "
                f"{self._cluster}; start again with an empty checkpoint"
            )
        return batch <= written.batch


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    import uvloop

    return uvloop.run(work)
