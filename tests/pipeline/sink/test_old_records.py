"""Exactly-once writes of records that are years old: producers expire by the time of the write, not of the record.

Kafka counts a producer's idle time from its last record's timestamp, so a producer of old records expires at the next
check. Here the broker checks continuously, and each interruption waits for a check; some also kill the broker.
"""

from __future__ import annotations

import random
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas import ProducerConfig
from barnabas.pipeline.sink.identity import TaskIdentity
from barnabas.pipeline.sink.rows import SinkRecord
from barnabas.pipeline.sink.task import send_what_is_missing
from tests.support.daemon import Daemon, start_daemon
from tests.support.eventually import eventually
from tests.support.topics import create_topics, read_topic

PARTITIONS = 2
RECORDS = 4000
LONG_AGO_MS = 1_600_000_000_000
_RUNS = re.compile(r'^barnabas_task_runs_total\{task="producer-id-expiration"\} (\d+)', re.MULTILINE)


class TaskDiedError(Exception):
    """The task dies in the middle of its rows."""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with start_daemon(
        tmp_path / "broker", "log.initial.task.delay.ms=0", "producer.id.expiration.check.interval.ms=20"
    ) as running:
        yield running


def looks_at_producers(daemon: Daemon) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{daemon.metrics_port}/metrics", timeout=30) as response:
        found = _RUNS.search(response.read().decode())
    return 0 if found is None else int(found[1])


def wait_until_forgotten(daemon: Daemon) -> None:
    """Wait for the ends of two expiration checks, that is, for one complete check."""
    before = looks_at_producers(daemon)
    eventually(lambda: looks_at_producers(daemon) >= before + 2 or None, what="the broker looks for silent producers")


def rows(upto: int | None = None) -> Iterator[SinkRecord]:
    for number in range(RECORDS):
        if number == upto:
            raise TaskDiedError
        key = b"%d" % (number % 7)
        yield SinkRecord("old", key, b"%05d" % number, [], number % PARTITIONS, LONG_AGO_MS + number)


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_replay_of_old_records_adds_nothing_twice_wherever_it_is_interrupted(
    daemon: Daemon, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    await create_topics(daemon.bootstrap, "old", partitions=PARTITIONS)
    config = ProducerConfig(bootstrap=daemon.bootstrap, batch_size=2000)
    for upto in sorted(chance.sample(range(500, RECORDS), 4)):
        with pytest.raises(TaskDiedError):
            await send_what_is_missing(config, rows(upto), TaskIdentity(str(tmp_path / "state"), 0, 0), 0)
        if chance.random() < 0.5:
            daemon.restart(clean=False)  # the log is read again, not a clean shutdown's snapshot
            config = ProducerConfig(bootstrap=daemon.bootstrap, batch_size=2000)
        wait_until_forgotten(daemon)
    for _ in range(2):
        await send_what_is_missing(config, rows(), TaskIdentity(str(tmp_path / "state"), 0, 0), 0)
        wait_until_forgotten(daemon)
    for partition in range(PARTITIONS):
        found = [r.value for r in await read_topic(daemon.bootstrap, "old", PARTITIONS) if r.partition == partition]
        assert found == [b"%05d" % number for number in range(partition, RECORDS, PARTITIONS)]
