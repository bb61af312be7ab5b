"""What Spark passes to a task about its micro-batch, as local properties of the task's context."""

from __future__ import annotations

from typing import Final

from pyspark import TaskContext

from barnabas.pipeline.errors import PipelineError

_BATCH_ID: Final = "streaming.sql.batchId"
_QUERY_ID: Final = "sql.streaming.queryId"


def micro_batch_of_task() -> tuple[int, str]:
    """Return the micro-batch's number and the query's id. Raises PipelineError outside a streaming query's task."""
    context = TaskContext.get()
    batch_id = None if context is None else context.getLocalProperty(_BATCH_ID)
    query = None if context is None else context.getLocalProperty(_QUERY_ID)
    if batch_id is None or query is None:
        raise PipelineError("Spark passed no query id or batch id to the task, so a replay cannot be recognized")
    return int(batch_id), query
