"""A job on Spark's `local-cluster`: driver and two executors in separate processes, as on a cluster's machines.

It takes minutes of JVM time, so it runs only if BARNABAS_INTEROP_CLUSTER is set.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.support.daemon import REPOSITORY
from tests.support.storage.bench import START_MS, TP, LogBench, append, batch

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif("BARNABAS_INTEROP_CLUSTER" not in os.environ, reason="BARNABAS_INTEROP_CLUSTER is not set"),
]


SMALL = ("--conf", "spark.sql.shuffle.partitions=2")
COMMAND = f"import sys; sys.path.insert(0, {str(REPOSITORY)!r}); from barnabas.commands.entry import main; main()"
"""`python -m barnabas` without PYTHONPATH or working directory, both of which the workers would inherit."""


def run_stats(directory: Path, python: str | Path, python_path: str) -> subprocess.CompletedProcess[str]:
    """Run `stats` on one record with `python` for the workers, and `python_path` for their PYTHONPATH."""
    bench = LogBench(directory / "data")
    log = bench.open()
    append(log, batch((START_MS, b"k", b"v")))
    bench.close(log)
    job = ("-c", COMMAND, "pipeline", "stats", "--log-dir", str(directory / "data"), "--topic", TP.topic)
    return subprocess.run(
        [sys.executable, *job, "--master", "local-cluster[2,1,512]", "--conf", "spark.executor.memory=512m", *SMALL],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": python_path, "PYSPARK_PYTHON": str(python)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_job_runs_on_executors_whose_python_has_the_package(tmp_path: Path) -> None:
    done = run_stats(tmp_path, sys.executable, str(REPOSITORY))
    assert done.returncode == 0, done.stderr
    assert "stats: 1 record" in done.stdout


def test_a_python_that_lacks_a_module_is_named_in_one_sentence(tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", symlinks=True)
    python = tmp_path / "bare" / "bin" / "python"
    done = run_stats(tmp_path, python, "")
    assert done.returncode == 1
    assert f"the Python {python} on this machine, where Spark plans, has no module barnabas:" in done.stderr
    assert "Traceback" not in done.stderr
