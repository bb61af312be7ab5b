"""A Spark session for tests: quiet, small, local, in UTC, with this interpreter and this source tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.daemon import REPOSITORY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "local[2,3]"

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""Options of a JVM with small jobs for a minute: else it spends most of its CPU on optimizing and verifying code."""

_JVM_END_S = 60


def missing_for_spark() -> str | None:
    """Return why Spark cannot run here, or None."""
    java_home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (java_home and (Path(java_home) / "bin" / "java").exists()):
        return "no Java runtime on this machine: Spark needs one"
    return None


@contextmanager
def running_spark(directory: Path, master: str = MASTER, **config: str) -> Iterator[SparkSession]:
    """Run a session whose files are in `directory`; `config` has Spark's names with `_` for `.`.

    The JVM ends with the session. PySpark would keep it for the next session of this process, which could then change
    neither its class path (`spark.jars`) nor its memory nor where Derby keeps its files.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    assert SparkContext._gateway is None, "another test of this process has a JVM that does not end with its session"
    paths = [str(REPOSITORY), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    with pytest.MonkeyPatch.context() as environ:
        environ.setenv("PYSPARK_PYTHON", sys.executable)
        environ.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        environ.setenv("PYTHONPATH", os.pathsep.join(dict.fromkeys(paths)))
        builder = (
            SparkSession.builder.master(master)
            .appName("barnabas-tests")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.memory", "1g")
            .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={directory} {SHORT_LIVED}")
            .config("spark.local.dir", str(directory / "local"))
            .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.log.level", "ERROR")
        )
        for name, value in config.items():
            builder = builder.config(name.replace("_", "."), value)
        try:
            session: SparkSession = builder.getOrCreate()
            try:
                yield session
            finally:
                session.stop()
        finally:
            _end_jvm()


def _end_jvm() -> None:
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None:
        return
    SparkContext._gateway = SparkContext._jvm = None
    gateway.shutdown()
    process: subprocess.Popen[bytes] = gateway.proc
    assert process.stdin is not None
    process.stdin.close()  # the JVM ends with this pipe
    try:
        process.wait(_JVM_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
