"""What a worker process of Spark has loaded is kept out of its garbage collections.

Spark's Python daemon runs a full `gc.collect()` after each task of a worker that it uses again. With pyspark, pyarrow
and this package loaded that walks objects which never go, 20 to 35 ms of CPU a task: more than a small micro-batch
needs for its records. At its second task of ours a worker puts what is there into the permanent generation; the
collection just before has removed what was garbage, so none of it is kept. Measured on a source that does nothing else:
Python's share of a micro-batch of four tasks 130 -> 30 ms of CPU. Source: pyspark/daemon.py, `gc.freeze` in CPython.
"""

from __future__ import annotations

import gc

from pyspark import TaskContext

_tasks_of_process = 0


def keep_what_is_loaded() -> None:
    """At the beginning of a task. Does nothing outside of one: another program's memory is its own."""
    global _tasks_of_process
    if TaskContext.get() is None:
        return
    _tasks_of_process += 1
    if _tasks_of_process == 2:  # by now all that a task imports late is there as well
        gc.freeze()
