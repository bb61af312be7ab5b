"""A stateful stream behind a shuffle, written with exactlyOnce=transactions, despite kills of everything that runs it.

Drivers are killed at each step of a commit, executors and Python workers in the middle of their rows, and some tasks
are written by two attempts. Rows differ between two attempts by a random number, so that their order and contents do.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Daemon, start_daemon
from tests.support.spark.driver_kills import STEPS, driver_kills_done
from tests.support.spark.pipeline_driver import LOCAL_MASTER, Driver
from tests.support.spark.pipeline_kills import TaskKills
from tests.support.topics import create_topics, has_open_transactions, read_committed_topic

pytestmark = pytest.mark.timeout(1200)

SEED = 20261122
PARTITIONS = 3
BATCHES = 5
NEW_KEYS = 1500
END_TIMEOUT_S = 600


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(
        tmp_path_factory.mktemp("broker"), "log.initial.task.delay.ms=0", "transaction.two.phase.commit.enable=true"
    ) as running:
        yield running


def input_files(directory: Path, chance: random.Random) -> list[str]:
    """Write one file for each micro-batch, with new keys, and keys that it or an earlier file has; return the keys."""
    directory.mkdir()
    known: list[str] = []
    for number in range(BATCHES):
        new = [f"{number}-{key:04d}" for key in range(NEW_KEYS)]
        known += new
        keys = new + chance.choices(known, k=NEW_KEYS)
        chance.shuffle(keys)
        (directory / f"{number}.json").write_text("".join(json.dumps({"key": key}) + "\n" for key in keys))
    return known


def test_committed_rows_equal_those_of_a_run_without_failures(daemon: Daemon, tmp_path: Path) -> None:
    asyncio.run(create_topics(daemon.bootstrap, "distinct", partitions=PARTITIONS))
    chance = random.Random(SEED)
    expected = input_files(tmp_path / "in", chance)
    last = BATCHES - 1
    kinds = {"0-0": "worker", "2-1": "worker", f"{last}-0": "executor"}
    # A task has half of a micro-batch's keys, roughly.
    task_plan = {task: [(kind, chance.randrange(NEW_KEYS // 8, NEW_KEYS // 3))] for task, kind in kinds.items()}
    task_plan |= {"1-0": [("speculation", 0)], "3-1": [("speculation", 0)], f"{last}-1": [("speculation", 0)]}
    task_plan[f"{last}-1"].append(("worker", NEW_KEYS // 4))
    driver_plan = {str(batch): [step] for batch, step in enumerate(chance.sample(STEPS, len(STEPS)))}
    kills = TaskKills(tmp_path / "kills", task_plan, driver_plan)
    work = {
        "work": "distinct",
        "bootstrap": daemon.bootstrap,
        "source": str(tmp_path / "in"),
        "checkpoint": str(tmp_path / "checkpoint"),
        "topic": "distinct",
    }
    log = tmp_path / "log"
    for number in range(len(STEPS)):
        driver = Driver(work | {"master": LOCAL_MASTER}, log, kills.directory)
        try:
            assert driver.ends_within(END_TIMEOUT_S), log.read_text(errors="replace")[-4000:]
        finally:
            driver.kill()
        assert len(driver_kills_done(kills.directory)) == number + 1, log.read_text(errors="replace")[-4000:]
    driver = Driver(work, log, kills.directory)  # a cluster: its executors are killed as well
    try:
        driver.wait(END_TIMEOUT_S)
    finally:
        driver.kill()
    assert driver_kills_done(kills.directory) == set(STEPS)
    assert kills.killed() == kills.planned()
    assert kills.already_there()  # the micro-batch whose driver died after its decision
    records = asyncio.run(read_committed_topic(daemon.bootstrap, "distinct", PARTITIONS))
    assert sorted((record.value or b"").decode().partition(":")[0] for record in records) == sorted(expected)
    assert not asyncio.run(has_open_transactions(daemon.bootstrap, "distinct", PARTITIONS))
