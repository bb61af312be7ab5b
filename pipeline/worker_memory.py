"""Keeps the loaded modules of a Spark worker out of its garbage collections.

Spark's Python daemon runs a full `gc.collect()` after each task of a reused worker. With pyspark, pyarrow and this
package loaded, a collection walks long-lived objects for 20 to 35 ms of CPU: more than a small micro-batch needs for
its records. At its second task here a worker moves all objects to the permanent generation; the collection just before
has removed the garbage. Measured with a source that does nothing else: Python's share of a micro-batch of four tasks
130 -> 30 ms of CPU. Source: pyspark/daemon.py, `gc.freeze` in CPython.
"""

from __future__ import annotations

import gc

from pyspark import TaskContext

_tasks_of_process = 0


def keep_what_is_loaded() -> None:
    """Freeze loaded objects; call at the start of a task. Outside a task it does nothing."""
    global _tasks_of_process
    if TaskContext.get() is None:
        return
    _tasks_of_process += 1
    if _tasks_of_process == 2:  # by now the late imports of a task are loaded as well
        gc.freeze()
