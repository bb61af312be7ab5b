"""One soak: a broker, rounds of load on topics of their own, faults, and the check at the end of each round.

A round ends with its writers, then its readers have read everything, and the history is compared with what is stored.
Its topics are deleted, and the history is dropped, so that a soak of any length needs the memory of one round. The
broker lives on, from one fault to the next.
"""

from __future__ import annotations

import asyncio
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import trustme

from barnabas import Admin, AdminConfig
from tests.support.daemon import Daemon, start_daemon
from tests.support.tls import inline_properties
from tests.torture.soak.checker import Anomaly, find_anomalies
from tests.torture.soak.disk import small_disk
from tests.torture.soak.faults import Faults, draw
from tests.torture.soak.final_read import read_final
from tests.torture.soak.history import ABORTED, COMMITTED
from tests.torture.soak.load.administration import Administrator, Peers
from tests.torture.soak.load.aio import AioIdempotent
from tests.torture.soak.load.librdkafka import LibrdkafkaIdempotent, LibrdkafkaMember, LibrdkafkaTransactions
from tests.torture.soak.load.offset_watcher import OffsetWatcher
from tests.torture.soak.load.own_consumers import OwnMember, OwnPipe, OwnReader
from tests.torture.soak.load.own_producers import OwnIdempotent, OwnKeyed, OwnTransactions
from tests.torture.soak.load.stage import PARTITIONS, Stage
from tests.torture.soak.sampling import Sampler
from tests.torture.soak.trends import Trend

_DISK_MIB = 512
_END_S = 90
_SETTINGS = {
    "log.retention.check.interval.ms": 1000,
    "log.cleaner.backoff.ms": 500,
    "log.segment.delete.delay.ms": 1000,
    "log.cleaner.dedupe.buffer.size": 8 << 20,
    "offsets.topic.num.partitions": 2,
    "offsets.topic.segment.bytes": 65536,
    "transaction.state.log.num.partitions": 2,
    "transaction.state.log.segment.bytes": 65536,
    "group.consumer.heartbeat.interval.ms": 500,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "metadata.log.max.record.bytes.between.snapshots": 65536,
    "metadata.max.retention.bytes": 262144,
}


class Client(Protocol):
    """A part of the load: runs until the stage ends its kind."""

    async def run(self) -> None:
        """Run."""
        ...


@dataclass(frozen=True)
class Plan:
    """What one soak does."""

    seconds: float
    seed: int
    round_seconds: float = 20
    mean_pause: float = 15
    """Mean time between faults."""
    environ: Mapping[str, str] | None = None
    """For the broker."""


@dataclass
class Outcome:
    """What one soak has done and found."""

    totals: Counter[str] = field(default_factory=Counter)
    anomalies: list[Anomaly] = field(default_factory=list)
    trends: dict[str, list[Trend]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    @property
    def rising(self) -> list[str]:
        """The measures that rise in a life of the broker."""
        return [name for name, found in self.trends.items() if any(each.is_rising for each in found)]


async def soak(plan: Plan) -> Outcome:
    """Run one soak. Raises BrokerProcessError if the broker does not start after a fault."""
    outcome = Outcome()
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-")))
        disk = stack.enter_context(small_disk(directory / "disk", _DISK_MIB))
        log_directories = [directory / "disk" / name for name in ("one", "two")]
        ports = _free_ports(2)
        settings = {**_SETTINGS, "log.dirs": ",".join(map(str, log_directories)), **_listeners(ports)}
        daemon = stack.enter_context(
            start_daemon(directory, *(f"{name}={value}" for name, value in settings.items()), environ=plan.environ)
        )
        faults = Faults(daemon, draw(plan.seed, plan.mean_pause), disk)
        sampler = Sampler(log_directories)
        async with AsyncExitStack() as tasks:
            tasks.push_async_callback(_end, asyncio.create_task(_sample(daemon, sampler)))
            tasks.push_async_callback(_end_faults, faults, asyncio.create_task(faults.run()))
            until = time.monotonic() + plan.seconds
            number = 0
            while time.monotonic() < until and not outcome.anomalies:
                number += 1
                stage = Stage(daemon.bootstrap, number, plan.seed)
                seconds = min(plan.round_seconds, until - time.monotonic())
                await _round(stage, seconds, faults, ports, log_directories, outcome)
        outcome.trends = sampler.trends()
        outcome.totals.update({f"faults: {kind}": count for kind, count in faults.done.items()})
        outcome.totals["broker lives"] = len(sampler.lives)
    return outcome


async def _end(task: asyncio.Task[None]) -> None:
    """Cancel a task, and raise what it has failed with."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()


async def _end_faults(faults: Faults, task: asyncio.Task[None]) -> None:
    """Cancel the task between two faults: the thread of a restart cannot be cancelled, and would leave a broker."""
    async with faults.calm:
        await _end(task)


async def _sample(daemon: Daemon, sampler: Sampler) -> None:
    while True:
        if daemon.running:
            await asyncio.to_thread(sampler.take, daemon.pid)
        await asyncio.sleep(0.25)


async def _round(
    stage: Stage,
    seconds: float,
    faults: Faults,
    ports: Sequence[int],
    directories: Sequence[Path],
    outcome: Outcome,
) -> None:
    pipes = [OwnPipe(stage, "pipe")]
    async with faults.calm, Admin(AdminConfig(bootstrap=stage.bootstrap)) as admin:
        for topic, configs in stage.topics().items():
            await admin.create_topic(topic, partitions=PARTITIONS, configs=configs)
    writers: list[Client] = [
        OwnIdempotent(stage, f"own-{stage.number}", stage.plain),
        OwnIdempotent(stage, f"trimmed-{stage.number}", stage.trimmed),
        LibrdkafkaIdempotent(stage, stage.plain),
        AioIdempotent(stage, stage.plain),
        OwnTransactions(stage, "own-a"),
        OwnTransactions(stage, "own-b"),
        LibrdkafkaTransactions(stage),
        OwnKeyed(stage),
        Administrator(stage, directories),
        Peers(stage, ports),
        OffsetWatcher(stage),
    ]
    readers: list[Client] = [
        *pipes,
        OwnReader(stage),
        OwnMember(stage, "own-member-1"),
        OwnMember(stage, "own-member-2"),
        LibrdkafkaMember(stage, "new-member-1"),
        LibrdkafkaMember(stage, "new-member-2"),
    ]
    writing = [asyncio.create_task(each.run(), name=type(each).__name__) for each in writers]
    reading = [asyncio.create_task(each.run(), name=type(each).__name__) for each in readers]
    try:
        await _wait([*writing, *reading], seconds)
        stage.writers_end.set()
        await _wait(writing, _END_S)
        stage.readers_end.set()
        await _wait(reading, _END_S)
    finally:
        # After a failure, too: threads end by these signals only.
        stage.writers_end.set()
        stage.readers_end.set()
        for each in (*writing, *reading):
            each.cancel()
        await asyncio.wait([*writing, *reading])
    unfinished = [each for each in (*writing, *reading) if each.cancelled()]
    if unfinished:
        names = ", ".join(each.get_name() for each in unfinished)
        outcome.anomalies.append(Anomaly("no end", f"still at work {_END_S} s after the end of a round: {names}"))
    async with faults.calm:
        final = await read_final(stage)
        found = find_anomalies(
            stage.history,
            final,
            compacted=[stage.keyed],
            trimmed=[stage.trimmed],
            pipes=[(stage.plain, output) for output in stage.pipes.values()],
        )
        async with Admin(AdminConfig(bootstrap=stage.bootstrap)) as admin:
            for topic in stage.topics():
                await admin.delete_topic(topic)
    outcome.anomalies += found
    outcome.errors += stage.history.errors
    _count(stage, outcome, len(writers) + len(readers))


async def _wait(tasks: Sequence[asyncio.Task[None]], seconds: float) -> None:
    """Wait for all tasks; raise what the first one fails with."""
    done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    for each in done:
        each.result()


def _count(stage: Stage, outcome: Outcome, clients: int) -> None:
    history = stage.history
    keyed = sum(each.is_acknowledged for each in history.keyed)
    transactional = sum(len(each.writes) for each in history.transactions if each.outcome == COMMITTED)
    outcome.totals.update(
        {
            "rounds": 1,
            "clients": clients,
            "acknowledged records": len(history.writes) + keyed + transactional,
            "records read": sum(len(each.records) for each in history.polls),
            "committed transactions": sum(each.outcome == COMMITTED for each in history.transactions),
            "aborted transactions": sum(each.outcome == ABORTED for each in history.transactions),
            "offset commits": stage.commits,
            "errors that clients got": len(history.errors),
        }
    )


def _listeners(ports: Sequence[int]) -> dict[str, str]:
    certificate = trustme.CA().issue_cert("127.0.0.1")
    listeners = f"PLAINTEXT://127.0.0.1:{ports[0]},SSL://127.0.0.1:{ports[1]}"
    return {"listeners": listeners, **inline_properties(certificate)}


def _free_ports(count: int) -> list[int]:
    """Return ports that are free now. The broker needs the same ones after each start, of both listeners."""
    with ExitStack() as stack:
        found = []
        for _ in range(count):
            listening = stack.enter_context(socket.socket())
            listening.bind(("127.0.0.1", 0))
            found.append(int(listening.getsockname()[1]))
    return found
