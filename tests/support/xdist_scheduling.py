"""Distribution of tests to xdist's workers: file by file, and all of the pipeline's to one worker.

The pipeline's tests share a JVM. Each further worker with one of their files would start another, and compile Spark's
code again, for 30 to 40 seconds of CPU.
"""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

PIPELINE = "tests/pipeline/"


class FilesAndOnePipeline(LoadFileScheduling):  # type: ignore[misc]
    """xdist's `--dist=loadfile` with one scope for the pipeline's files."""

    def _split_scope(self, nodeid: str) -> str:
        scope: str = super()._split_scope(nodeid)
        return PIPELINE if scope.startswith(PIPELINE) else scope
