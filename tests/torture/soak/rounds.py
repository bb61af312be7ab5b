"""One round of a soak: its topics and clients, and the check at its end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from barnabas import Admin, AdminConfig
from tests.support.daemon import Daemon
from tests.support.mirrors.torn_network import TornNetwork
from tests.torture.soak import mirror
from tests.torture.soak.checker import Anomaly, find_anomalies
from tests.torture.soak.faults import Faults
from tests.torture.soak.final_read import end_transactions, read_final
from tests.torture.soak.load.abandoned_transactions import AbandonedTransactions
from tests.torture.soak.load.administration import Administrator, Peers
from tests.torture.soak.load.aio import AioIdempotent
from tests.torture.soak.load.group_deletion import GroupDeletion
from tests.torture.soak.load.librdkafka import LibrdkafkaIdempotent, LibrdkafkaMember, LibrdkafkaTransactions
from tests.torture.soak.load.librdkafka_pipe import LibrdkafkaPipe
from tests.torture.soak.load.librdkafka_share import LibrdkafkaShareMember
from tests.torture.soak.load.offset_watcher import OffsetWatcher
from tests.torture.soak.load.own_consumers import OwnMember, OwnPipe, OwnReader
from tests.torture.soak.load.own_producers import OwnIdempotent, OwnKeyed, OwnTransactions
from tests.torture.soak.load.share_members import DELIVERIES, OwnShareMember, begin_share_group, end_share_group
from tests.torture.soak.load.stage import PARTITIONS, Stage
from tests.torture.soak.outcome import Outcome
from tests.torture.soak.share_checker import find_share_anomalies

_END_S = 90


class Client(Protocol):
    """A part of the load: runs until the stage ends its kind."""

    async def run(self) -> None:
        """Run."""
        ...


@dataclass(frozen=True)
class Place:
    """Where the rounds of a soak happen."""

    daemon: Daemon
    mirror: Daemon
    network: TornNetwork
    ports: Sequence[int]
    """Of the broker's listeners for clients without and with TLS."""
    log_directories: Sequence[Path]
    faults: Faults
    left_groups: set[str] = field(default_factory=set)
    """Groups of earlier rounds that have not been deleted yet."""


async def run_round(stage: Stage, seconds: float, place: Place, outcome: Outcome) -> None:
    """Let the round's clients work for some seconds, and to their ends; then add what was found."""
    clients, anomalies = await let_work(stage, seconds, place)
    outcome.anomalies += anomalies
    async with place.faults.calm:
        outcome.anomalies += await _judge(stage, place)
    place.left_groups.update(stage.groups, [stage.share_group])
    outcome.add_round(stage.history, commits=stage.commits, promoted=stage.promoted, clients=clients)


async def let_work(stage: Stage, seconds: float, place: Place) -> tuple[int, list[Anomaly]]:
    """Let the clients work for some seconds, and to their ends; return their number, and which ones have no end."""
    writers, readers = _writers(stage, place), _readers(stage)
    async with place.faults.calm, Admin(AdminConfig(bootstrap=stage.bootstrap)) as admin:
        await asyncio.to_thread(begin_share_group, place.daemon, stage)
        for topic, configs in stage.topics().items():
            await admin.create_topic(topic, partitions=PARTITIONS, configs=configs)
    writing = [asyncio.create_task(each.run(), name=type(each).__name__) for each in writers]
    reading = [asyncio.create_task(each.run(), name=type(each).__name__) for each in readers]
    try:
        await _wait([*writing, *reading], seconds)
        stage.writers_end.set()
        await _wait(writing, _END_S)
        async with place.faults.calm:
            # A member of a share group waits for every record, and cannot pass an open transaction.
            await end_transactions(stage, stage.transactional_ids - stage.pipes.keys())
        stage.readers_end.set()
        await _wait(reading, _END_S)
    finally:
        # After a failure, too: threads end by these signals.
        stage.writers_end.set()
        stage.readers_end.set()
        stage.over.set()
        for each in (*writing, *reading):
            each.cancel()
        await asyncio.wait([*writing, *reading])
    unfinished = [each for each in (*writing, *reading) if each.cancelled()]
    names = ", ".join(each.get_name() for each in unfinished)
    text = f"still at work {_END_S} s after the end of a round: {names}"
    return len(writers) + len(readers), [Anomaly("no end", text)] if unfinished else []


def _writers(stage: Stage, place: Place) -> list[Client]:
    direct, torn = stage.bootstrap, stage.torn_bootstrap
    return [
        OwnIdempotent(stage, f"own-{stage.number}", stage.plain, torn),
        OwnIdempotent(stage, f"trimmed-{stage.number}", stage.trimmed, direct),
        LibrdkafkaIdempotent(stage, stage.plain),
        AioIdempotent(stage, stage.plain),
        OwnTransactions(stage, "own-a", direct),
        OwnTransactions(stage, "own-b", torn),
        LibrdkafkaTransactions(stage),
        AbandonedTransactions(stage, torn),
        OwnKeyed(stage),
        Administrator(stage, place.log_directories),
        Peers(stage, place.ports),
        OffsetWatcher(stage),
        GroupDeletion(stage, place.left_groups),
    ]


def _readers(stage: Stage) -> list[Client]:
    direct, torn = stage.bootstrap, stage.torn_bootstrap
    return [
        OwnPipe(stage, "pipe"),
        LibrdkafkaPipe(stage, "pipe-librdkafka"),
        OwnReader(stage),
        OwnMember(stage, "own-member-1", direct),
        OwnMember(stage, "own-member-2", torn),
        LibrdkafkaMember(stage, "new-member-1", direct),
        LibrdkafkaMember(stage, "new-member-2", torn),
        OwnShareMember(stage, "share-member-1", direct, "batch_optimized"),
        OwnShareMember(stage, "share-member-2", torn, "batch_optimized"),
        OwnShareMember(stage, "share-member-3", torn, "record_limit"),
        LibrdkafkaShareMember(stage, "share-member-4", torn),
    ]


async def _judge(stage: Stage, place: Place) -> list[Anomaly]:
    """Compare the history with what is stored, and that with the mirror; delete the topics."""
    final = await read_final(stage)
    found = find_anomalies(
        stage.history,
        final,
        compacted=[stage.keyed],
        trimmed=[stage.trimmed],
        pipes=[(stage.plain, output) for output in stage.pipes.values()],
    )
    found += find_share_anomalies(stage.history, final, stage.shared, DELIVERIES)
    found += await mirror.compare(place.mirror, stage, final)
    async with Admin(AdminConfig(bootstrap=stage.bootstrap)) as admin:
        for topic in stage.topics():
            await admin.delete_topic(topic)
    await asyncio.to_thread(end_share_group, place.daemon, stage)
    return found


async def _wait(tasks: Sequence[asyncio.Task[None]], seconds: float) -> None:
    """Wait for all tasks; raise what the first one fails with."""
    done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    for each in done:
        each.result()
