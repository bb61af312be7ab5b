"""One soak: a broker, rounds of load on topics of their own, faults, and the check at the end of each round.

A round ends with its writers, then its readers have read everything, and the history is compared with what is stored,
and that with what a mirror has. Its topics are deleted, and the history is dropped, so that a soak of any length needs
the memory of one round. Both brokers live on, from one fault to the next.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.daemon import Daemon, start_daemon
from tests.support.free_ports import free_ports
from tests.support.mirrors.torn_network import TornNetwork
from tests.support.small_disk import small_disk
from tests.torture.soak import mirror
from tests.torture.soak.brokers import listeners, words
from tests.torture.soak.checker import Anomaly
from tests.torture.soak.faults import CHANCES, Faults, draw
from tests.torture.soak.load.stage import Stage
from tests.torture.soak.outcome import Outcome
from tests.torture.soak.rounds import Place, run_round
from tests.torture.soak.sampling import Sampler

_DISK_MIB = 512


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


async def soak(plan: Plan) -> Outcome:
    """Run one soak. Raises BrokerProcessError if a broker does not start at the beginning, or stop at the end."""
    outcome = Outcome()
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-")))
        network = await stack.enter_async_context(TornNetwork(random.Random(f"network/{plan.seed}")))
        disk = stack.enter_context(small_disk(directory / "disk", f"{_DISK_MIB}m"))
        log_directories = [directory / "disk" / name for name in ("one", "two")]
        ports = free_ports(3)
        network.upstream = ("127.0.0.1", ports[2])
        own = {"log.dirs": ",".join(map(str, log_directories)), **listeners(ports, network.address)}
        daemon = stack.enter_context(start_daemon(directory / "broker", *words(own), environ=plan.environ))
        copy = stack.enter_context(start_daemon(directory / "mirror", *words({}), environ=plan.mirror_environ))
        await mirror.begin(copy, daemon.bootstrap)
        faults = Faults(daemon, copy, network, draw(plan.seed, plan.mean_pause, plan.faults), disk)
        samplers = {"": Sampler(log_directories), "mirror: ": Sampler([copy.data_directory])}
        place = Place(daemon, copy, network, ports[:2], log_directories, faults)
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
        outcome.totals["groups left"] = len(place.left_groups)
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


async def _rounds(plan: Plan, place: Place, outcome: Outcome) -> None:
    until = time.monotonic() + plan.seconds
    number = 0
    while time.monotonic() < until and not outcome.anomalies:
        number += 1
        stage = Stage(place.daemon.bootstrap, place.network.address, number, plan.seed)
        await run_round(stage, min(plan.round_seconds, until - time.monotonic()), place, outcome)


async def _sample(daemon: Daemon, sampler: Sampler) -> None:
    while True:
        if daemon.running:
            await asyncio.to_thread(sampler.take, daemon.pid)
        await asyncio.sleep(0.25)
