"""Apache Flink: a job from a KafkaSource to a KafkaSink, which its process and the broker are killed under."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.ecosystem.exchange import PARTITIONS
from tests.support.ecosystem.flow import OUTPUT, process_through_kills
from tests.support.ecosystem.java import compiled
from tests.support.program import Program
from tests.support.storage.committed_records import committed_records

VERSION = "2.2.1, connector 5.0.0-2.2"
TOTAL = 15_000
"""Records: a job takes seconds to start, and has to be at work when the broker is killed."""
OPENED = ("java.base/java.lang", "java.base/java.util", "java.base/java.time")


@pytest.fixture(scope="module")
def java() -> list[str]:
    opened = [f"--add-opens={package}=ALL-UNNAMED" for package in OPENED]
    classpath = compiled("flink", Path(__file__).parent / "flink")
    return ["java", "-Xmx768m", *opened, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", classpath, "Capitals"]


def run(daemon: Daemon, java: list[str], directory: Path, guarantee: str) -> None:
    def job(bootstrap: str, source: str, target: str) -> Program:
        return Program(directory / "job", [*java, bootstrap, source, target, guarantee, str(directory / "checkpoints")])

    process_through_kills(daemon, job, total=TOTAL)


@pytest.mark.ecosystem("Apache Flink", VERSION, "KafkaSource and KafkaSink, at least once, job killed too")
def test_flink_loses_nothing_when_the_broker_is_killed(daemon: Daemon, java: list[str], tmp_path: Path) -> None:
    run(daemon, java, tmp_path, "AT_LEAST_ONCE")


@pytest.mark.ecosystem(
    "Apache Flink",
    VERSION,
    "KafkaSource and KafkaSink, exactly once, job killed too",
    "`transaction.timeout.ms` of the sink: at most the broker's `transaction.max.timeout.ms`, which its default is not",
)
def test_flink_writes_exactly_once_when_the_broker_is_killed(daemon: Daemon, java: list[str], tmp_path: Path) -> None:
    run(daemon, java, tmp_path, "EXACTLY_ONCE")
    written = sum(
        1 for partition in range(PARTITIONS) for _ in committed_records(daemon.data_directory, OUTPUT, partition)
    )
    assert written == TOTAL
