"""Every record arrives exactly once despite kill -9 of drivers, executors and Python workers: sink, archive, replay.

A seed determines the kills. Drivers die after an amount of work (records in the topic, files in the archive), executors
and Python workers kill themselves in the middle of a task's rows: each of those kills happens, and the task is retried.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from barnabas import Producer, ProducerConfig
from tests.support.daemon import Daemon, start_daemon
from tests.support.spark.pipeline_driver import Driver
from tests.support.spark.pipeline_kills import Plan, TaskKills
from tests.support.topics import count_records, create_topics, read_topic

pytestmark = pytest.mark.timeout(1200)

SEED = 20241129
PARTITIONS = 3
END_TIMEOUT_S = 600


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(
        tmp_path_factory.mktemp("broker"), "log.initial.task.delay.ms=0", "producer.id.expiration.check.interval.ms=100"
    ) as running:
        yield running


def run_with_kills(
    work: dict[str, str], log: Path, done: Callable[[], int], driver_kills: list[int], plan: Plan
) -> TaskKills:
    """Restart the work after each kill of its driver, until it succeeds; assert that all planned kills happened."""
    kills = TaskKills(log.with_suffix(".kills"), plan)
    killed_drivers = 0
    driver = Driver(work, log, kills.directory)
    try:
        for after in driver_kills:
            deadline = time.monotonic() + END_TIMEOUT_S
            while done() < after and not driver.ends_within(0.1):
                assert time.monotonic() < deadline, log.read_text(errors="replace")[-4000:]
            if driver.ends_within(0):
                break
            driver.kill()
            killed_drivers += 1
            driver = Driver(work, log, kills.directory)
        driver.wait(END_TIMEOUT_S)
    finally:
        driver.kill()
    assert killed_drivers
    assert kills.killed() == kills.planned()
    # Fewer than the kills: attempts are counted from 0 by a new driver, and by a stage whose shuffled rows were lost
    # with an executor.
    assert kills.reruns() > 0
    return kills


def points(chance: random.Random, total: int, count: int) -> list[int]:
    return sorted(chance.sample(range(1, total * 9 // 10), count))


def task_kills(chance: random.Random, tasks: list[str], rows: int) -> Plan:
    """Plan one kill in each task, alternating the kinds.

    `rows` is the average number of rows in a task; some tasks have a third less.
    """
    kinds = ["worker", "executor"] * len(tasks)
    return {task: [(kind, chance.randrange(rows // 4, rows // 2))] for task, kind in zip(tasks, kinds, strict=False)}


def test_a_streams_records_are_in_the_topic_once(daemon: Daemon, tmp_path: Path) -> None:
    asyncio.run(create_topics(daemon.bootstrap, "sink", partitions=PARTITIONS))
    source = tmp_path / "in"
    source.mkdir()
    expected = []
    for number in range(6):
        names = [f"{number}-{index:05d}" for index in range(8000)]
        expected += names
        rows = [{"key": name[-1], "value": name + "x" * 100} for name in names]
        (source / f"{number}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    work = {
        "work": "sink",
        "bootstrap": daemon.bootstrap,
        "source": str(source),
        "checkpoint": str(tmp_path / "checkpoint"),
        "topic": "sink",
    }
    chance = random.Random(SEED)
    kills = run_with_kills(
        work,
        tmp_path / "log",
        lambda: asyncio.run(count_records(daemon.bootstrap, "sink", PARTITIONS)),
        points(chance, len(expected), 1),
        task_kills(chance, ["0-0", "1-0", "3-0", "4-0"], 3500),
    )
    assert kills.already_there()
    found = Counter(
        (record.value or b"").decode().rstrip("x")
        for record in asyncio.run(read_topic(daemon.bootstrap, "sink", PARTITIONS))
    )
    assert found == Counter(expected)


async def fill(daemon: Daemon, topic: str, records: int) -> None:
    await create_topics(daemon.bootstrap, topic, partitions=PARTITIONS)
    async with Producer(ProducerConfig(bootstrap=daemon.bootstrap, compression="lz4")) as producer:
        for number in range(records):
            await producer.send(
                topic,
                None if number % 11 == 0 else b"%06d" % number + b"." * 80,
                b"%d" % (number % 50),
                headers=[("number", b"%d" % number)] if number % 2 else [],
                timestamp_ms=1_700_000_000_000 + number * 700,
            )


def archived_rows(archive: Path) -> list[tuple[object, ...]]:
    names = ["topic", "partition", "offset", "key", "value", "timestamp"]
    rows: list[tuple[object, ...]] = []
    for path in archive.rglob("*.parquet"):
        if "_barnabas" not in path.parts:
            table = pq.read_table(path, columns=names, partitioning=None)
            rows += zip(*(table.column(name).to_pylist() for name in names), strict=True)
    return sorted(rows, key=lambda row: (row[1], row[2]))


def test_an_archive_has_every_record_of_the_log_once_and_its_replay_too(daemon: Daemon, tmp_path: Path) -> None:
    total = 24_000
    asyncio.run(fill(daemon, "log", total))
    archive = tmp_path / "archive"
    work = {
        "work": "archive",
        "bootstrap": daemon.bootstrap,
        "archive": str(archive),
        "topic": "log",
        "step": str(total // 8),
    }

    def files() -> int:
        # os.walk goes on where a directory of a task goes meanwhile.
        return sum(name.endswith(".parquet") for _, _, names in os.walk(archive) for name in names)

    chance = random.Random(SEED + 1)
    plan = task_kills(chance, ["0-0", "2-1", "4-2", "5-0"], total // 8 // PARTITIONS)
    run_with_kills(work, tmp_path / "log-archive", files, points(chance, 20, 1), plan)
    original = asyncio.run(read_topic(daemon.bootstrap, "log", PARTITIONS))
    rows = archived_rows(archive)
    assert [row[:5] for row in rows] == [("log", r.partition, r.offset, r.key, r.value) for r in original]
    assert [int(row[5].timestamp() * 1000) for row in rows if hasattr(row[5], "timestamp")] == [
        record.timestamp for record in original
    ]

    asyncio.run(create_topics(daemon.bootstrap, "copy", partitions=PARTITIONS))
    work = {
        "work": "replay",
        "bootstrap": daemon.bootstrap,
        "archive": str(archive),
        "state": str(tmp_path / "state"),
        "topic": "log",
        "to": "copy",
    }
    kill_at = points(chance, total, 3)
    kills = run_with_kills(
        work,
        tmp_path / "log-replay",
        lambda: asyncio.run(count_records(daemon.bootstrap, "copy", PARTITIONS)),
        points(chance, total, 1),
        {"0-0": list(zip(["worker", "executor", "worker"], kill_at, strict=True))},
    )
    assert kills.already_there()
    copy = asyncio.run(read_topic(daemon.bootstrap, "copy", PARTITIONS))
    assert [(r.partition, r.key, r.value, list(r.headers), r.timestamp) for r in copy] == [
        (r.partition, r.key, r.value, list(r.headers), r.timestamp) for r in original
    ]
