"""Promotion of some of a round's copies at the mirror: they keep what they have, and take new records after it."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Collection

from barnabas import Admin, AdminConfig, Producer, ProducerConfig, TopicPartition
from tests.support.daemon import Daemon
from tests.support.mirrors.copies import MIRROR
from tests.torture.soak.checker import Anomaly
from tests.torture.soak.copy_checker import find_differences
from tests.torture.soak.final_read import read_all
from tests.torture.soak.history import Final, Place, StoredRecord
from tests.torture.soak.load.stage import PARTITIONS, Stage
from tests.torture.soak.waiting import WAIT_S, lacking_after_a_time

_RECORDS = 50


async def promote(mirror: Daemon, stage: Stage, final: Final) -> list[Anomaly]:
    """Promote one to three topics that the mirror has copied whole, write to them, and read them.

    Half of the time the mirror's broker is killed meanwhile.
    """
    chance = stage.chance("promotion")
    candidates = [stage.plain, stage.ledger, *stage.pipes.values()]
    topics = chance.sample(candidates, chance.randrange(1, 4))
    async with Admin(AdminConfig(bootstrap=mirror.bootstrap)) as admin:
        await admin.mirrors.promote(MIRROR, topics)
    if chance.random() < 0.5:
        await asyncio.to_thread(mirror.restart, clean=False)
    async with Admin(AdminConfig(bootstrap=mirror.bootstrap)) as admin:
        waiting = await _wait(admin, topics)
        if waiting:
            return [Anomaly("no end", f"not promoted after {WAIT_S:.0f} s: {waiting}")]
    stage.promoted += len(topics)
    added = await _write(mirror.bootstrap, topics, chance)
    places = [TopicPartition(topic, number) for topic in topics for number in range(PARTITIONS)]
    expected = Final(
        {(topic, number): [*final.records[topic, number], *added[topic, number]] for topic, number in places}
    )
    found = find_differences(expected, await read_all(mirror.bootstrap, places), {})
    return [each._replace(text=f"promoted: {each.text}") for each in found]


async def _wait(admin: Admin, topics: Collection[str]) -> list[str]:
    """Wait until these topics are promoted; return the others after a time."""

    async def find_waiting() -> list[str]:
        described = await admin.mirrors.describe(MIRROR)
        return [f"{each}" for each in described.topics if each.topic in topics and each.state != "promoted"]

    return await lacking_after_a_time(find_waiting, pause_s=0.05)


async def _write(bootstrap: str, topics: Collection[str], chance: random.Random) -> dict[Place, list[StoredRecord]]:
    """Write to all partitions with an idempotent producer; return what was acknowledged, in the order of offsets."""
    added: dict[Place, list[StoredRecord]] = defaultdict(list)
    async with Producer(ProducerConfig(bootstrap=bootstrap)) as producer:
        for number in range(_RECORDS):
            for topic in topics:
                value = b"promoted:%d:%s" % (number, b"." * chance.randrange(200))
                for partition in range(PARTITIONS):
                    found = await producer.send_and_wait(topic, value, partition=partition)
                    added[topic, partition].append((found.offset, None, value))
    return added
