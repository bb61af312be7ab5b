"""Drill of mirrors: kill -9 of the source and of the mirror, and cut connections, at moments that a seed draws.

BARNABAS_TEST_MIRROR_SEEDS has the seeds, "1-20" or "1,5"; each needs a few seconds.
"""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest

from barnabas.protocol.messages.cluster.mirrors import MirrorDescription
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.daemon import Daemon, start_daemon
from tests.support.mirrors.copies import MIRROR, admin_of, segments, until
from tests.support.mirrors.drill import COMPACTED_CONFIGS, PARTITIONS, Writer, check
from tests.support.mirrors.torn_network import TornNetwork

SETTINGS = (
    "offsets.topic.num.partitions=2",
    "transaction.state.log.num.partitions=2",
    "log.cleaner.backoff.ms=20",
)
WAIT_S = 60


def seeds() -> list[int]:
    found: list[int] = []
    for part in os.environ.get("BARNABAS_TEST_MIRROR_SEEDS", "6").split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


async def run(source: Daemon, copy: Daemon, network: TornNetwork, seed: int) -> None:
    """Write to topics of this seed between faults, and compare both sides at the end."""
    chance = random.Random(-seed)
    async with admin_of(source) as admin:
        await admin.create_topic(f"t-{seed}", partitions=PARTITIONS)
        await admin.create_topic(f"c-{seed}", partitions=1, configs=COMPACTED_CONFIGS)
    writer = await asyncio.to_thread(Writer, source, seed)
    for _ in range(4):
        await asyncio.to_thread(writer.write, chance.randrange(5, 30))
        await asyncio.sleep(chance.random() * 0.2)  # the mirror is at another point of its work with each seed
        network.cut_rate = 0.0
        match chance.choice(("source", "copy", "network")):
            case "source":
                await asyncio.to_thread(source.restart, clean=False)
                await asyncio.to_thread(writer.reconnect)
            case "copy":
                await asyncio.to_thread(copy.restart, clean=False)
            case _:
                network.cut_rate = chance.choice((0.1, 0.5))
    network.cut_rate = 0.0
    await asyncio.to_thread(writer.finish)
    ends = len(writer.records)

    def is_copied(found: MirrorDescription) -> bool:
        mine = [each for each in found.partitions if each.topic in (writer.topic, writer.table)]
        return (
            len(mine) == PARTITIONS + 1
            and all(each.state == "caught_up" for each in mine)
            and all(each.offset == ends for each in mine if each.topic == writer.table)
            and segments(copy.data_directory, writer.topic) == segments(source.data_directory, writer.topic)
        )

    await until(copy, is_copied)
    async with asyncio.timeout(WAIT_S):
        await check(source, writer)
        await check(copy, writer)
        async with admin_of(copy) as admin:
            expected = {TopicPartition(writer.topic, number): offset for number, offset in writer.offsets.items()}
            while {key: each.offset for key, each in (await admin.group_offsets(writer.group)).items()} != expected:
                await asyncio.sleep(0.1)


@pytest.mark.timeout(90 + 30 * len(seeds()))
async def test_no_record_is_wrong_doubled_or_missing_after_kills_and_cut_connections(tmp_path: Path) -> None:
    async with TornNetwork(random.Random(0)) as network:
        listener = f"advertised.listeners={network.address}"
        with (
            start_daemon(tmp_path / "source", *SETTINGS, listener) as source,
            start_daemon(tmp_path / "copy", *SETTINGS) as copy,
        ):
            network.upstream = (source.host, source.port)
            async with admin_of(copy) as admin:
                await admin.mirrors.create(
                    MIRROR,
                    bootstrap=[network.address],
                    topics=["[tc]-[0-9]+"],
                    groups=["g-.*"],
                    metadata_max_age_ms=200,
                )
            for seed in seeds():
                await run(source, copy, network, seed)
                print(seed, network.cuts, flush=True)
