"""A stateful stream behind a shuffle, written with exactlyOnce=transactions, despite kills of everything that runs it.

Drivers are killed at each step of a commit, executors and Python workers in the middle of their rows. Rows of a task
differ between two attempts (a random number), so a mixture of attempts would be noticed.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Daemon, start_daemon
from tests.support.interop import require_or_skip
from tests.support.spark.driver_kills import STEPS, driver_kills_done
from tests.support.spark.pipeline_driver import Driver
from tests.support.spark.pipeline_kills import TaskKills
from tests.support.spark.session import missing_for_spark
from tests.support.topics import create_topics, has_open_transactions, read_committed_topic

pytestmark = pytest.mark.timeout(1200)

SEED = 20261122
PARTITIONS = 3
BATCHES = 6
KEYS = 3000
END_TIMEOUT_S = 600


@pytest.fixture(scope="module", autouse=True)
def _needs_spark() -> None:
    missing = missing_for_spark()
    if missing is not None:
        require_or_skip(missing)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(
        tmp_path_factory.mktemp("broker"), "log.initial.task.delay.ms=0", "transaction.two.phase.commit.enable=true"
    ) as running:
        yield running


def input_files(directory: Path, chance: random.Random) -> list[tuple[str, int]]:
    """Write one file for each micro-batch; return the counts that the query gives, of every micro-batch."""
    directory.mkdir()
    counts: Counter[str] = Counter()
    expected = []
    for number in range(BATCHES):
        keys = [f"k{key:04d}" for key in range(KEYS) for _ in range(chance.randrange(1, 3))]
        chance.shuffle(keys)
        (directory / f"{number}.json").write_text("".join(json.dumps({"key": key}) + "\n" for key in keys))
        counts.update(keys)
        expected += list(counts.items())
    return expected


def test_committed_rows_equal_those_of_a_run_without_failures(daemon: Daemon, tmp_path: Path) -> None:
    asyncio.run(create_topics(daemon.bootstrap, "counts", partitions=PARTITIONS))
    chance = random.Random(SEED)
    expected = input_files(tmp_path / "in", chance)
    tasks = ["0-0", "1-1", "2-0", "3-1", "5-0"]
    task_plan = {
        task: [(kind, chance.randrange(KEYS // 8, KEYS // 3))]
        for task, kind in zip(tasks, ["worker", "executor"] * 3, strict=False)
    }
    driver_plan = {str(batch): [step] for batch, step in zip(chance.sample(range(BATCHES), 4), STEPS, strict=True)}
    kills = TaskKills(tmp_path / "kills", task_plan, driver_plan)
    work = {
        "work": "counts",
        "bootstrap": daemon.bootstrap,
        "source": str(tmp_path / "in"),
        "checkpoint": str(tmp_path / "checkpoint"),
        "topic": "counts",
    }
    log = tmp_path / "log"
    for _ in STEPS:
        driver = Driver(work, log, kills.directory)
        try:
            assert driver.ends_within(END_TIMEOUT_S), log.read_text(errors="replace")[-4000:]
        finally:
            driver.kill()
    driver = Driver(work, log, kills.directory)
    try:
        driver.wait(END_TIMEOUT_S)
    finally:
        driver.kill()
    assert driver_kills_done(kills.directory) == set(STEPS)
    assert kills.killed() == kills.planned()
    assert kills.already_there()  # the micro-batch whose driver died after its decision
    records = asyncio.run(read_committed_topic(daemon.bootstrap, "counts", PARTITIONS))
    found = [(record.value or b"").decode().split(":") for record in records]
    assert sorted((key, int(count)) for key, count, _ in found) == sorted(expected)
    assert not asyncio.run(has_open_transactions(daemon.bootstrap, "counts", PARTITIONS))
