"""A Spark driver that tests kill. It runs one piece of the pipeline, given as JSON, in a process group of its own.

With `local-cluster` the executors are separate processes, which can be killed too: by their own tasks
(pipeline_kills.py), because no other process knows when a task is in the middle of its rows.

Optional in each: "master", by default a cluster; in "distinct" also "protocol", by default native.

    {"work": "sink", "bootstrap", "source", "checkpoint", "topic"}      a stream of JSON files into a topic
    {"work": "distinct", "bootstrap", "source", "checkpoint", "topic"}  the first line of each key, with transactions
    {"work": "archive", "bootstrap", "archive", "topic"}                the archive job
    {"work": "replay", "bootstrap", "archive", "state", "topic", "to"}  the replay job
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.daemon import REPOSITORY
from tests.support.spark.driver_kills import DIRECTORY, name_driver
from tests.support.spark.pipeline_kills import MortalArchive, MortalSource
from tests.support.spark.session import SHORT_LIVED

MASTER = "local-cluster[2,1,512]"
LOCAL_MASTER = "local[2,8]"
"""Starts sooner, but has no executors to kill."""


class Driver:
    """A running driver, which may be killed; `wait` for its end."""

    def __init__(self, work: dict[str, str], log: Path, task_kills: Path) -> None:
        environ = os.environ | {
            "PYTHONPATH": str(REPOSITORY),
            "PYSPARK_PYTHON": sys.executable,
            DIRECTORY: str(task_kills),
        }
        self._log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.spark.pipeline_driver", json.dumps(work)],
                cwd=REPOSITORY,
                env=environ,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def ends_within(self, seconds: float) -> bool:
        """Wait for the end at most `seconds`; return whether it has ended."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """Kill driver, JVM and executors together."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def wait(self, timeout_s: float) -> None:
        """Wait until it has ended successfully. Raises AssertionError with the end of its log."""
        code = self._process.wait(timeout_s)
        assert code == 0, self._log.read_text(errors="replace")[-4000:]


def _main(work: dict[str, Any]) -> None:
    from barnabas.pipeline.spark.session import build_session

    conf = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.sql.shuffle.partitions": "2",
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        f"spark.executorEnv.{DIRECTORY}": os.environ[DIRECTORY],
        "spark.task.maxFailures": "8",
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.executor.extraJavaOptions": SHORT_LIVED,
    }
    name_driver(os.getpid())
    with build_session("to be killed", master=work.get("master", MASTER), conf=conf, debug=True) as spark:
        spark.dataSource.register(MortalSource)
        if work["work"] == "sink":
            stream = spark.readStream.schema("key string, value string").option("maxFilesPerTrigger", 1)
            query = (
                stream.json(work["source"])
                .writeStream.format("barnabas")
                .option("kafka.bootstrap.servers", work["bootstrap"])
                .option("kafka.batch.size", "1000")
                .option("topic", work["topic"])
                .option("checkpointLocation", work["checkpoint"])
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
        elif work["work"] == "distinct":
            from pyspark.sql import functions as sf

            lines = spark.readStream.schema("key string").option("maxFilesPerTrigger", 1).json(work["source"])
            # After the shuffle the order is Spark's, and rand() makes the rows of each attempt different ones.
            query = (
                lines.dropDuplicates(["key"])
                .select("key", sf.concat_ws(":", "key", sf.rand().cast("string")).alias("value"))
                .writeStream.format("barnabas")
                .option("kafka.bootstrap.servers", work["bootstrap"])
                .option("kafka.batch.size", "1000")
                .option("topic", work["topic"])
                .option("exactlyOnce", "transactions")
                .option("protocol", work.get("protocol", "native"))
                .option("checkpointLocation", work["checkpoint"])
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
        elif work["work"] == "archive":
            from barnabas.pipeline.jobs import archive

            source = {
                "kafka.bootstrap.servers": work["bootstrap"],
                "subscribe": work["topic"],
                "startingOffsets": "earliest",
                "maxOffsetsPerTrigger": work["step"],
            }
            setattr(archive, "ArchiveSink", MortalArchive)  # noqa: B010 - mypy knows it as a constant of another module
            archive.run(spark, archive.ArchiveOptions(work["archive"], source))
        else:
            from barnabas.pipeline.jobs import replay

            sink = {"kafka.bootstrap.servers": work["bootstrap"], "kafka.batch.size": "1000"}
            topics = {work["topic"]: work["to"]}
            replay.run(spark, replay.ReplayOptions(work["archive"], work["state"], sink, topics))


if __name__ == "__main__":
    _main(json.loads(sys.argv[1]))
