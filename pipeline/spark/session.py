"""A SparkSession for one job, started and stopped with it.

It sets only what a job needs: UTC (an archive's hours are UTC hours), this Python for workers on this machine, and no
Spark log without --debug. Nothing is downloaded, neither packages nor jars. `spark.*` properties of the caller override
all settings.

The format is registered although Spark would find it: a found format runs with `PYSPARK_DRIVER_PYTHON` on the executors
too, without the session's files, and when that Python lacks barnabas, the only message is
`barnabas.DefaultSource`. A registered format runs with `PYSPARK_PYTHON` and the session's files, and a worker without
barnabas reports the missing module.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from pyspark.sql import SparkSession

from barnabas.pipeline.data_source import BarnabasDataSource
from barnabas.pipeline.spark.java_notice import start_jvm

Session: TypeAlias = SparkSession
"""For the commands, which must not import pyspark."""

DEFAULT_MASTER = "local[*]"

_LOCAL_MASTER = re.compile(r"local(?:\[(\*|\d+)(?:, *\d+)?\])?")
_TASKS_PER_THREAD = 4
_LEAST_TASKS = 8
ROWS_TO_PYTHON = 500
"""In an Arrow batch to a Python writer. Spark compares the bytes of a batch with its limit after each row, which takes
time in proportion to its rows if there are headers: with Spark's default, 10,000, more time than everything else."""
_FOR_A_CLUSTER = ("spark.sql.shuffle.partitions", "spark.sql.sources.parallelPartitionDiscovery.parallelism")

LOG_PROPERTIES = Path(__file__).with_name("log4j2.properties")
"""Only what ends the JVM is written to standard error: failures come as sentences (failures.py)."""


@contextmanager
def build_session(
    name: str,
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    debug: bool = False,
    show_progress: bool = False,
) -> Iterator[SparkSession]:
    """Build a session called `name`, and stop it at the end.

    `master` None: spark-submit's choice if it started this process, else `local[*]`. `show_progress` shows Spark's
    progress bar on standard error. Raises PySparkRuntimeError when Java is missing.
    """
    properties = _properties(master, debug=debug, show_progress=show_progress)
    properties.update(conf or {})
    tasks = local_tasks(properties.get("spark.master", ""))
    if tasks is not None:
        for key in _FOR_A_CLUSTER:
            properties.setdefault(key, str(tasks))
    if properties.get("spark.master", DEFAULT_MASTER).startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if not debug:
        logging.getLogger("SQLQueryContextLogger").setLevel(
            logging.CRITICAL
        )  # it logs exceptions that are raised as well
        start_jvm({"spark.app.name": name, **properties})
    builder = SparkSession.builder.appName(name)
    for key, value in properties.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        spark.dataSource.register(BarnabasDataSource)
        yield spark
    finally:
        spark.stop()


def local_tasks(master: str) -> int | None:
    """Return the number of tasks for `local`, `local[4]`, `local[*]` or `local[4,3]`; None for another master.

    Spark's defaults, 200 shuffle partitions and up to 10,000 tasks to list files, suit a cluster; on two cores most of
    their time is task start-up. Four tasks per thread still split a large shuffle into pieces that Spark can spill.
    """
    match = _LOCAL_MASTER.fullmatch(master)
    if match is None:
        return None
    threads = os.cpu_count() or 1 if match[1] == "*" else int(match[1] or 1)
    return max(_LEAST_TASKS, _TASKS_PER_THREAD * threads)


def _properties(master: str | None, *, debug: bool, show_progress: bool) -> dict[str, str]:
    properties = {
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "true" if show_progress else "false",
        "spark.sql.execution.pythonUDF.arrow.enabled": "false",  # it needs pandas, and warns without it
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS_TO_PYTHON),
    }
    if master is not None:
        properties["spark.master"] = master
    elif "PYSPARK_GATEWAY_PORT" not in os.environ:  # set by spark-submit, which has chosen the master
        properties["spark.master"] = DEFAULT_MASTER
    if not debug:
        properties["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={LOG_PROPERTIES}"
    return properties
