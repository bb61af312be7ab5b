"""A worker freezes its loaded objects (gc.freeze) once, at its second task, and only in a task."""

from __future__ import annotations

import json
import subprocess
import sys

_COUNT = """
import gc, json, sys
from pyspark import TaskContext
from barnabas.pipeline.worker_memory import keep_what_is_loaded
if sys.argv[1] == "task":
    TaskContext._getOrCreate()
counts = []
for _ in range(4):
    keep_what_is_loaded()
    counts.append(gc.get_freeze_count())
print(json.dumps(counts))
"""


def _freeze_counts(where: str) -> list[int]:
    """Return the counts after each of four calls in a separate process."""
    command = [sys.executable, "-c", _COUNT, where]
    counts: list[int] = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=120).stdout)
    return counts


def test_the_second_task_freezes_what_is_loaded_and_no_later_one_does() -> None:
    first, second, *later = _freeze_counts("task")
    assert first == 0
    assert second > 10_000
    assert max(later) <= second  # frozen objects that are deleted no longer count


def test_nothing_is_frozen_outside_of_a_task() -> None:
    assert _freeze_counts("no task") == [0, 0, 0, 0]
