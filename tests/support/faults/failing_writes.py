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
_VARIABLE = "FAILING_WRITES"


class Control:
    """The file by which writes are told to fail; for the process itself where the library is preloaded into it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of_environ(cls) -> Control:
        """Return the control of this process's own writes."""
        return cls(Path(os.environ[_VARIABLE]))

    def fail(self, which: str, where: str) -> None:
        """Let writes to files whose path contains `where` fail; `which` is explained in failing_writes.c."""
        prepared = self.path.with_suffix(".new")
        prepared.write_text(f"{which} {where}\n")
        prepared.rename(self.path)

    def stop(self) -> int:
        """Let all writes succeed again; return the number of writes that failed since the last call."""
        self.path.unlink()
        count = self.path.with_suffix(".count")
        failed = count.stat().st_size if count.exists() else 0
        count.unlink(missing_ok=True)
        return failed


class FailingWrites(Control):
    """Control of one broker's writes. Skips the test where there is no C compiler."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory / "failing_writes")
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            pytest.skip("a C compiler is needed")
        library = directory / "failing_writes.so"
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, _SOURCE, "-ldl"], check=True)
        self.environ = {**os.environ, "LD_PRELOAD": str(library), _VARIABLE: str(self.path)}
