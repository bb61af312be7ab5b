"""Sinks whose tasks are killed in the middle of their rows according to a plan, and files that record the kills.

    <directory>/plan.json            {"<micro-batch>-<task>": [["worker" | "executor" | "speculation", row], ...], ...}
    <directory>/killed-<micro-batch>-<task>-<number>    created before that kill of the task: it happens only once
    <directory>/began-<attempt>-<unique>                for every attempt
    <directory>/done-<attempt>-<unique>                 for successful attempts: the number of rows already present

`worker` is the Python process that writes, `executor` the JVM above it; the Python process survives its JVM for a
moment and continues to write, as on a machine that loses its network. `speculation` kills nothing: the task first
writes all rows as another attempt whose result is lost, as Spark drops that of a slower speculative attempt (it starts
none on a host that runs the task already, so not in these tests). The directory is given by the environment,
because the sinks reject unknown options. Executors find these classes because the tests are on their PYTHONPATH.
"""

from __future__ import annotations

import json
import os
import signal
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    DataSourceStreamWriter,
    DataSourceWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from barnabas.pipeline.archive.sink import ArchiveCommit, ArchiveSink, ArchiveWriter
from barnabas.pipeline.data_source import BarnabasDataSource
from barnabas.pipeline.sink.transactional_write import TransactionCommit
from barnabas.pipeline.sink.writers import SinkCommit, make_batch_writer, make_stream_writer
from tests.support.spark.driver_kills import DIRECTORY, DriverPlan, driver_kills, plan_driver_kills

EXECUTOR_CLASS: Final = b"CoarseGrainedExecutorBackend"
_PLAN: Final = "plan.json"
_ROWS_AT_A_TIME: Final = 50

_Commit = TypeVar("_Commit")

Plan = dict[str, list[tuple[str, int]]]


class TaskKills:
    """A plan of kills, and its results, on the test's side. `driver_plan`: see driver_kills.py."""

    def __init__(self, directory: Path, plan: Plan, driver_plan: DriverPlan | None = None) -> None:
        directory.mkdir()
        self.directory = directory
        self.plan = plan
        (directory / _PLAN).write_text(json.dumps(plan))
        plan_driver_kills(directory, driver_plan or {})

    def killed(self) -> list[str]:
        """Return the kinds of the kills that happened."""
        names = (path.name.split("-") for path in self.directory.glob("killed-*"))
        return sorted(self.plan[f"{batch}-{task}"][int(number)][0] for _, batch, task, number in names)

    def planned(self) -> list[str]:
        """Return the kinds of all planned kills."""
        return sorted(what for kills in self.plan.values() for what, _ in kills)

    def reruns(self) -> int:
        """Return the number of attempts after the first one of a task."""
        return sum(1 for path in self.directory.glob("began-*") if not path.name.startswith("began-0-"))

    def already_there(self) -> int:
        """Return the number of rows that successful attempts found already written."""
        return sum(int(path.read_text()) for path in self.directory.glob("done-*"))


class MortalSource(BarnabasDataSource):
    """`format("barnabas")` whose writers' tasks, and drivers during a commit, may be killed."""

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return a MortalBatchWriter."""
        return MortalBatchWriter(make_batch_writer(self.options, schema, overwrite=overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return a MortalStreamWriter."""
        return MortalStreamWriter(make_stream_writer(self.options, schema, overwrite=overwrite))


class MortalBatchWriter(DataSourceArrowWriter):
    """The writer of a batch write."""

    def __init__(self, writer: DataSourceArrowWriter) -> None:
        self._writer = writer

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write one task's rows, unless killed."""
        return _write(self._writer.write, iterator, rows_already_there)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit, unless the driver is killed."""
        with driver_kills(0):
            self._writer.commit(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Abort."""
        self._writer.abort(messages)


class MortalStreamWriter(DataSourceStreamArrowWriter):
    """The writer of a stream."""

    def __init__(self, writer: DataSourceStreamArrowWriter) -> None:
        self._writer = writer

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write one task's rows, unless killed."""
        return _write(self._writer.write, iterator, rows_already_there)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Commit, unless the driver is killed."""
        with driver_kills(batchId):
            self._writer.commit(messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Abort."""
        self._writer.abort(messages, batchId)


def rows_already_there(commit: WriterCommitMessage) -> int:
    """Return the number of rows that an attempt found written."""
    assert isinstance(commit, (SinkCommit, TransactionCommit))
    return commit.already_there


class MortalArchive(ArchiveSink):
    """The archive's sink, whose tasks may be killed."""

    def streamWriter(self, schema: StructType, overwrite: bool) -> MortalArchiveWriter:
        """Return a MortalArchiveWriter."""
        return MortalArchiveWriter(self.options["path"], self.options["name"])


class MortalArchiveWriter(ArchiveWriter):
    """The writer of the archive job."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> ArchiveCommit:
        """Write one task's rows, unless killed."""
        return _write(super().write, iterator, lambda commit: 0)


def _write(
    write: Callable[[Iterator[pa.RecordBatch]], _Commit],
    batches: Iterator[pa.RecordBatch],
    already_there: Callable[[_Commit], int],
) -> _Commit:
    directory = Path(os.environ[DIRECTORY])
    context = TaskContext.get()
    assert context is not None
    attempt = f"{context.attemptNumber()}-{uuid.uuid4().hex}"
    (directory / f"began-{attempt}").touch()
    task = f"{context.getLocalProperty('streaming.sql.batchId') or 0}-{context.partitionId()}"
    if _is_speculated(directory, task):
        rows = list(batches)
        write(iter(rows))
        batches = iter(rows)
    commit = write(_until_killed(directory, task, batches))
    (directory / f"done-{attempt}").write_text(str(already_there(commit)))
    return commit


def _is_speculated(directory: Path, task: str) -> bool:
    for mark, what, _ in _ahead(directory, task):
        if what == "speculation":
            mark.touch()
            return True
    return False


def _ahead(directory: Path, task: str) -> list[tuple[Path, str, int]]:
    kills = json.loads((directory / _PLAN).read_text()).get(task, [])
    ahead = [(directory / f"killed-{task}-{number}", what, row) for number, (what, row) in enumerate(kills)]
    return [each for each in ahead if not each[0].exists()]


def _until_killed(directory: Path, task: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    ahead = [each for each in _ahead(directory, task) if each[1] != "speculation"]
    seen = 0
    for batch in batches:
        for start in range(0, batch.num_rows, _ROWS_AT_A_TIME):
            if ahead and seen >= ahead[0][2]:
                mark, what, _ = ahead.pop(0)
                mark.touch()
                os.kill(os.getpid() if what == "worker" else _executor_above(os.getpid()), signal.SIGKILL)
            piece = batch.slice(start, _ROWS_AT_A_TIME)
            seen += piece.num_rows
            yield piece


def _executor_above(pid: int) -> int:
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        if EXECUTOR_CLASS in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
    raise AssertionError("no executor's JVM above this process")
