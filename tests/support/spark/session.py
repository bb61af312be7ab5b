"""A Spark session for tests: quiet, small, local, in UTC, with this interpreter and this source tree."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.daemon import REPOSITORY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "local[2,3]"

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""The first compilation level, because a JVM with small jobs for a minute spends most of its CPU on optimizing."""


def missing_for_spark() -> str | None:
    """Return why Spark cannot run here, or None."""
    java_home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (java_home and (Path(java_home) / "bin" / "java").exists()):
        return "no Java runtime on this machine: Spark needs one"
    return None


def start_spark(directory: Path, master: str = MASTER, **config: str) -> SparkSession:
    """Start a session whose files are in `directory`; `config` has Spark's names with `_` for `.`."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    paths = [str(REPOSITORY), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
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
    session: SparkSession = builder.getOrCreate()
    return session
