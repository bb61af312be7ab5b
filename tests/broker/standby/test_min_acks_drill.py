"""Drill of standby.min.acks=1: a takeover under load, and then all that clients were told must still be true.

Even seeds are planned switches. Of the others, one half kills the active broker (kill -9) while the standby stands
still, the other half lets the active broker stand still until the standby has taken over. Some kill the standby before
and start it again. BARNABAS_TEST_STANDBY_SEEDS has the seeds, "1-20" or "1,5"; each takes about
5 s.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas import Admin, AdminConfig
from tests.support.daemon import Daemon, start_daemon
from tests.support.eventually import eventually
from tests.support.standby import Standby
from tests.support.standby_drill import IDEMPOTENT, PARTITIONS, TRANSACTIONAL, Drill, check, end_transactions

SETTINGS = {
    "standby.min.acks": 1,
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
    "group.initial.rebalance.delay.ms": 0,
}


def seeds() -> list[int]:
    text = os.environ.get("BARNABAS_TEST_STANDBY_SEEDS", "1-3")
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


@contextmanager
def pair(directory: Path) -> Iterator[tuple[Daemon, Standby]]:
    with start_daemon(directory / "active", *(f"{name}={value}" for name, value in SETTINGS.items())) as active:
        for topic in (IDEMPOTENT, TRANSACTIONAL):
            active.create_topic(topic, partitions=PARTITIONS)
        with Standby(directory / "standby", active.bootstrap, settings=SETTINGS) as standby:
            standby.until()
            yield active, standby


@pytest.mark.parametrize("seed", seeds())
async def test_no_promise_is_broken_by_a_takeover(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    enough = chance.randrange(20, 400)
    kills_standby = chance.random() < 0.3
    with pair(tmp_path) as (active, standby):
        drill = Drill(active.bootstrap, seed)
        promises = drill.promises
        stopped = asyncio.Event()
        running = asyncio.create_task(drill.run(stopped))

        async def until_acknowledged(count: int) -> None:
            while len(promises.acknowledged) < count or not promises.committed or not promises.offsets:
                await asyncio.wait([running], timeout=0.005)
                assert not running.done(), running.result()

        if kills_standby:
            await until_acknowledged(enough // 2)
            await asyncio.to_thread(standby.restart, clean=False)
            enough += len(promises.acknowledged)  # so that the standby copies again
        await until_acknowledged(enough)
        drill.may_end = True
        is_planned = seed % 2 == 0
        if is_planned:
            await asyncio.to_thread(standby.promote, planned=True)
        else:
            if seed % 4 == 1:
                # What is acknowledged or read from now on is not at the standby.
                os.kill(standby.pid, signal.SIGSTOP)
                await asyncio.wait([running], timeout=0.3)
            if seed % 4 == 1:
                active.kill()
                os.kill(standby.pid, signal.SIGCONT)
            else:
                os.kill(active.pid, signal.SIGSTOP)
            await asyncio.to_thread(standby.promote)
            if seed % 4 == 3:
                # Both are active until the old one hears of the takeover, and its clients go on.
                os.kill(active.pid, signal.SIGCONT)
                await asyncio.to_thread(
                    eventually, lambda: None if active.running else True, what="the end of the old one", timeout_s=30
                )
        stopped.set()
        await running
        async with Admin(AdminConfig(bootstrap=standby.bootstrap)) as admin:
            await admin.alter_configs(broker="", set_to={"standby.min.acks": "0"})
        await end_transactions(standby.bootstrap, drill)
        await check(standby.bootstrap, promises)
