"""Writes of a real broker that fail with EIO, those of its compiled kernels included (failing_writes.c, preloaded).

writes = FailingWrites(tmp_path)
with Daemon(directory, settings, writes.environ) as daemon:
    writes.fail("markers", "accounts-1/")      # until `stop`
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

_SOURCE = Path(__file__).with_name("failing_writes.c")


class FailingWrites:
    """Control of one broker's writes. Skips the test where there is no C compiler."""

    def __init__(self, directory: Path) -> None:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            pytest.skip("a C compiler is needed")
        library = directory / "failing_writes.so"
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, _SOURCE, "-ldl"], check=True)
        self._control = directory / "failing_writes"
        self.environ = {**os.environ, "LD_PRELOAD": str(library), "FAILING_WRITES": str(self._control)}

    def fail(self, which: str, where: str) -> None:
        """Let writes to files whose path contains `where` fail; `which` is explained in failing_writes.c."""
        prepared = self._control.with_suffix(".new")
        prepared.write_text(f"{which} {where}\n")
        prepared.rename(self._control)

    def stop(self) -> int:
        """Let all writes succeed again; return the number of writes that failed."""
        self._control.unlink()
        count = self._control.with_suffix(".count")
        return count.stat().st_size if count.exists() else 0
