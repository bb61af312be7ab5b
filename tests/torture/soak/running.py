"""One soak: a broker, rounds of load on topics of their own, faults, and the check at the end of each round.

A round ends with its writers, then its readers have read everything, and the history is compared with what is stored,
and that with what a mirror has. Its topics are deleted, and the history is dropped, so that a soak of any length needs
the memory of one round. Both brokers live on, from one fault to the next.
"""

from __future__ import annotations

import asyncio
import random
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
from tests.support.mirrors.torn_network import TornNetwork
from tests.support.tls import inline_properties
from tests.torture.soak import mirror
from tests.torture.soak.checker import Anomaly, find_anomalies
from tests.torture.soak.disk import small_disk
from tests.torture.soak.faults import CHANCES, Faults, draw
from tests.torture.soak.final_read import read_final
from tests.torture.soak.history import ABORTED, COMMITTED
from tests.torture.soak.load.administration import Administrator, Peers
from tests.torture.soak.load.aio import AioIdempotent
from tests.torture.soak.load.librdkafka import LibrdkafkaIdempotent, LibrdkafkaMember, LibrdkafkaTransactions
from tests.torture.soak.load.librdkafka_pipe import LibrdkafkaPipe
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
    faults: Mapping[str, int] = field(default_factory=lambda: CHANCES)
    """Weights of their kinds."""
    environ: Mapping[str, str] | None = None
    """For the broker."""
    mirror_environ: Mapping[str, str] | None = None


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


@dataclass(frozen=True)
class _Place:
    """Where the rounds of a soak happen."""

    daemon: Daemon
    mirror: Daemon
    network: TornNetwork
    ports: Sequence[int]
    """Of the broker's listeners for clients without and with TLS."""
    log_directories: Sequence[Path]
    faults: Faults


async def soak(plan: Plan) -> Outcome:
    """Run one soak. Raises BrokerProcessError if a broker does not start at the beginning, or stop at the end."""
    outcome = Outcome()
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-")))
        network = await stack.enter_async_context(TornNetwork(random.Random(f"network/{plan.seed}")))
        disk = stack.enter_context(small_disk(directory / "disk", _DISK_MIB))
        log_directories = [directory / "disk" / name for name in ("one", "two")]
        ports = _free_ports(3)
        network.upstream = ("127.0.0.1", ports[2])
        own = {"log.dirs": ",".join(map(str, log_directories)), **_listeners(ports, network.address)}
        daemon = stack.enter_context(start_daemon(directory / "broker", *_words(own), environ=plan.environ))
        copy = stack.enter_context(start_daemon(directory / "mirror", *_words({}), environ=plan.mirror_environ))
        await mirror.begin(copy, daemon.bootstrap)
        faults = Faults(daemon, copy, network, draw(plan.seed, plan.mean_pause, plan.faults), disk)
        samplers = {"": Sampler(log_directories), "mirror: ": Sampler([copy.data_directory])}
        place = _Place(daemon, copy, network, ports[:2], log_directories, faults)
        async with AsyncExitStack() as tasks:
            for sampled, sampler in zip((daemon, copy), samplers.values(), strict=True):
                tasks.push_async_callback(_end, asyncio.create_task(_sample(sampled, sampler)))
            happening = asyncio.create_task(faults.run())
            tasks.push_async_callback(_end_faults, faults, happening)
            rounds = asyncio.create_task(_rounds(plan, place, outcome))
            tasks.push_async_callback(_end, rounds)
            await asyncio.wait([happening, rounds], return_when=asyncio.FIRST_COMPLETED)
            if happening.done():
                outcome.anomalies.append(Anomaly("broker failed", repr(happening.exception())))
        for whose, sampler in samplers.items():
            outcome.trends.update({f"{whose}{name}": found for name, found in sampler.trends().items()})
            outcome.totals[f"{whose}broker lives"] = len(sampler.lives)
        outcome.totals.update({f"faults: {kind}": count for kind, count in faults.done.items()})
        outcome.totals["connections cut"] = network.cuts
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
        task.cancel()
        await asyncio.wait([task])


async def _rounds(plan: Plan, place: _Place, outcome: Outcome) -> None:
    until = time.monotonic() + plan.seconds
    number = 0
    while time.monotonic() < until and not outcome.anomalies:
        number += 1
        stage = Stage(place.daemon.bootstrap, place.network.address, number, plan.seed)
        await _round(stage, min(plan.round_seconds, until - time.monotonic()), place, outcome)


async def _sample(daemon: Daemon, sampler: Sampler) -> None:
    while True:
        if daemon.running:
            await asyncio.to_thread(sampler.take, daemon.pid)
        await asyncio.sleep(0.25)


async def _round(stage: Stage, seconds: float, place: _Place, outcome: Outcome) -> None:
    faults, direct, torn = place.faults, stage.bootstrap, stage.torn_bootstrap
    pipes: list[Client] = [OwnPipe(stage, "pipe"), LibrdkafkaPipe(stage, "pipe-librdkafka")]
    async with faults.calm, Admin(AdminConfig(bootstrap=stage.bootstrap)) as admin:
        for topic, configs in stage.topics().items():
            await admin.create_topic(topic, partitions=PARTITIONS, configs=configs)
    writers: list[Client] = [
        OwnIdempotent(stage, f"own-{stage.number}", stage.plain, torn),
        OwnIdempotent(stage, f"trimmed-{stage.number}", stage.trimmed, direct),
        LibrdkafkaIdempotent(stage, stage.plain),
        AioIdempotent(stage, stage.plain),
        OwnTransactions(stage, "own-a", direct),
        OwnTransactions(stage, "own-b", torn),
        LibrdkafkaTransactions(stage),
        OwnKeyed(stage),
        Administrator(stage, place.log_directories),
        Peers(stage, place.ports),
        OffsetWatcher(stage),
    ]
    readers: list[Client] = [
        *pipes,
        OwnReader(stage),
        OwnMember(stage, "own-member-1", direct),
        OwnMember(stage, "own-member-2", torn),
        LibrdkafkaMember(stage, "new-member-1", direct),
        LibrdkafkaMember(stage, "new-member-2", torn),
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
        # After a failure, too: threads end by these signals.
        stage.writers_end.set()
        stage.readers_end.set()
        stage.over.set()
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
        found += await mirror.compare(place.mirror, stage, final)
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


def _words(own: Mapping[str, object]) -> list[str]:
    return [f"{name}={value}" for name, value in {**_SETTINGS, **own}.items()]


def _listeners(ports: Sequence[int], torn: str) -> dict[str, str]:
    """Return the properties of the listeners: plain, TLS, and one that clients reach at the address `torn`."""
    certificate = trustme.CA().issue_cert("127.0.0.1")
    clients, tls, behind_torn = (f"127.0.0.1:{port}" for port in ports)
    return {
        "listeners": f"PLAINTEXT://{clients},SSL://{tls},TORN://{behind_torn}",
        "advertised.listeners": f"PLAINTEXT://{clients},SSL://{tls},TORN://{torn}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,TORN:PLAINTEXT",
        **inline_properties(certificate),
    }


def _free_ports(count: int) -> list[int]:
    """Return ports that are free now. The broker needs the same ones after each start, of both listeners."""
    with ExitStack() as stack:
        found = []
        for _ in range(count):
            listening = stack.enter_context(socket.socket())
            listening.bind(("127.0.0.1", 0))
            found.append(int(listening.getsockname()[1]))
    return found
