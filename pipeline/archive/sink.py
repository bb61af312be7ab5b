"""The sink of the archive job, as a data source: tasks write files, the commit adds them to the archive.

Registered by the job (`spark.dataSource.register`); its options are `path` and `name`. Executors and driver access
the archive through pyarrow's file systems, so on a cluster it must be on a shared file system or an object store.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage

from barnabas.pipeline.archive.files import ArchivedFile, ArchiveFileWriter
from barnabas.pipeline.archive.manifest import ArchiveState
from barnabas.pipeline.errors import PipelineError, in_one_sentence

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

FORMAT = "barnabas_archive"
_BATCH_ID = "streaming.sql.batchId"
_QUERY_ID = "sql.streaming.queryId"


@dataclass(frozen=True)
class ArchiveCommit(WriterCommitMessage):
    """One task's files; none when the micro-batch is committed already."""

    query: str
    files: tuple[ArchivedFile, ...]


class ArchiveSink(DataSource):
    """The data source `barnabas_archive`, which can only be written."""

    @classmethod
    def name(cls) -> str:
        """The name for `format(...)`."""
        return FORMAT

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        """Create a writer to the archive at `path`."""
        return ArchiveWriter(self.options["path"], self.options["name"])


class ArchiveWriter(DataSourceStreamArrowWriter):
    """Writes an archive. Pickled to the executors; `commit` runs on the driver, on another instance."""

    def __init__(self, archive: str, name: str) -> None:
        self._archive = archive
        self._name = name

    def write(self, iterator: Iterator[pa.RecordBatch]) -> ArchiveCommit:
        """Write one task's rows of one micro-batch."""
        context = TaskContext.get()
        batch_id = None if context is None else context.getLocalProperty(_BATCH_ID)
        query = None if context is None else context.getLocalProperty(_QUERY_ID)
        if context is None or batch_id is None or query is None:
            raise PipelineError("Spark passed no query id or batch id to the task")
        with in_one_sentence():
            state = ArchiveState(self._archive, self._name)
            if state.is_committed(int(batch_id), query):
                return ArchiveCommit(query, ())
            owner = f"{context.partitionId():05d}-{uuid.uuid4().hex}"
            writer = ArchiveFileWriter(state.file_system, state.root, state.temporary_directory(int(batch_id), owner))
            for batch in iterator:
                writer.write(batch)
            return ArchiveCommit(query, tuple(writer.finish()))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Commit the micro-batch, on the driver, after all tasks."""
        commits = [message for message in messages if isinstance(message, ArchiveCommit)]
        if not commits:
            return
        with in_one_sentence():
            files = [file for commit in commits for file in commit.files]
            ArchiveState(self._archive, self._name).commit(batchId, commits[0].query, files)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Do nothing: the next commit removes the temporary files."""
