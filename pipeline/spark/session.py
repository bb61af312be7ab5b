"""A SparkSession for one job, started and stopped with it.

What is set here is what a job cannot do without: UTC (an archive's hours are UTC hours), the Python that runs us on
the workers of this machine, and silence: Spark's log is for --debug. Nothing is downloaded: no packages, no jars.
`spark.*` properties of the caller win over all of it.

Our format is registered, although Spark finds it without: what it finds by itself runs as `PYSPARK_DRIVER_PYTHON` on
the executors too, without the session's files, and where the Python of the look-up lacks us, Spark says no more than
`barnabas.DefaultSource`. What is registered runs as `PYSPARK_PYTHON` with them, and a worker that lacks us says so.
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
"""For the commands, which may not name pyspark."""

DEFAULT_MASTER = "local[*]"

_LOCAL_MASTER = re.compile(r"local(?:\[(\*|\d+)(?:, *\d+)?\])?")
_TASKS_PER_THREAD = 4
_LEAST_TASKS = 8
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
    """A session called `name` that is stopped at the end.

    `master` None leaves it to spark-submit where that started us; else it is `local[*]`. `show_progress` draws Spark's
    own bar on standard error. Raises PySparkRuntimeError where no Java is found.
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
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # it writes what is raised as well
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
    """Into how many tasks Spark should share work on `local`, `local[4]`, `local[*]` or `local[4,3]`; None elsewhere.

    Its 200 parts of a shuffle, and up to 10,000 tasks that list an archive's files, are for a cluster: on two cores
    they are so many starts of tiny tasks. Four a thread still keep a large shuffle in pieces, which Spark spills.
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
        "spark.sql.execution.pythonUDF.arrow.enabled": "false",  # it wants pandas, and warns in its absence
    }
    if master is not None:
        properties["spark.master"] = master
    elif "PYSPARK_GATEWAY_PORT" not in os.environ:  # set where spark-submit started us: it has chosen already
        properties["spark.master"] = DEFAULT_MASTER
    if not debug:
        properties["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={LOG_PROPERTIES}"
    return properties
