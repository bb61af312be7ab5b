"""`make pipeline-demo` on few flights: every job as a user runs it, with a kill of the archive job halfway."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.daemon import REPOSITORY

pytestmark = pytest.mark.timeout(1200)

DONE = (
    *("archive killed", "archive resumed", "of their time_hour: 0"),
    *("snapshot", "replay", "match the log", "stopped broker"),
)


def test_the_demo_is_right_in_every_step(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "demo.pipeline", "--rows", "1200", "--partitions", "2"],
        cwd=REPOSITORY,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("ok ")]
    for step in DONE:
        assert any(step in line for line in lines), step
    assert "all checks passed" in done.stdout
    assert not list(tmp_path.glob("barnabas-*"))  # the demo removes its own files
