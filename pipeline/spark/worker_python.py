"""Explains a worker's Python that lacks a module: which Python, on which host, and what to do.

Spark runs `PYSPARK_PYTHON` in two places: the planner's worker on the driver's machine, which creates a source and
plans its reads, and the workers of the executors. A worker reports a traceback, and only a task's failure names its
host: `Lost task 0.3 in stage 0.0 (TID 3) (10.0.0.7 executor 1): ...`.
"""

from __future__ import annotations

import os
import re

_MISSING = re.compile(r"No module named '?(?P<module>[\w.]+)")
_TASK = re.compile(r"Lost task \S+ in stage \S+ \(TID \d+\) \((?P<host>\S+) executor \S+\)")
_NOT_STARTED = re.compile(r'Cannot run program "(?P<program>[^"]+)"')
_INSTALL = (
    "install the wheel of barnabas with pyarrow for it, or set PYSPARK_PYTHON to a Python that has both "
    "(docs/pipeline.md, On a cluster)"
)


def worker_python_sentence(text: str) -> str | None:
    """Return the explanation of a failure that Spark reports as `text`; None if no worker's Python caused it."""
    python = os.environ.get("PYSPARK_PYTHON", "python3")  # the same default as SparkContext's
    task = _TASK.search(text)
    place = "on this machine, where Spark plans," if task is None else f"on executor host {task['host']}"
    missing = _MISSING.search(text)
    if missing is not None:
        return f"the Python {python} {place} has no module {missing['module']}: {_INSTALL}"
    program = _NOT_STARTED.search(text)
    if program is not None and "python" in program["program"]:
        return f"the Python {program['program']} {place} cannot be run: {_INSTALL}"
    return None
