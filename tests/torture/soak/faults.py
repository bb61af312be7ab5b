"""Faults of a running broker, in an order and at moments that a seed draws.

kill      kill -9, and a start on the same ports and directories
restart   a clean stop, and a start
stall     SIGSTOP for up to three seconds
full      the disk of the log directories is full for up to two seconds, where there is one that may be filled
cut       the network of some clients cuts ten connections in the middle of answers, or some in eight seconds
mirror    kill -9 of the mirror's broker, and a start
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.support.daemon import Daemon
from tests.support.mirrors.torn_network import TornNetwork

KILL, RESTART, STALL, FULL, CUT, MIRROR = "kill", "restart", "stall", "full", "cut", "mirror"
CHANCES = {KILL: 5, RESTART: 2, STALL: 3, FULL: 3, CUT: 5, MIRROR: 2}
_CUT_RATE = 0.2
"""Share of the parts of answers that a cut network does not pass on whole."""
_CUTS = 10
_CUT_S = 8.0


class Fault(NamedTuple):
    """`pause` is the time since the last fault, `duration` that of a fault that passes; both in seconds."""

    kind: str
    pause: float
    duration: float


def draw(seed: int, mean_pause: float, chances: Mapping[str, int] = CHANCES) -> Iterator[Fault]:
    """Yield faults without an end. `chances` are weights of kinds."""
    chance = random.Random(f"faults/{seed}")
    while True:
        (kind,) = chance.choices(list(chances), list(chances.values()))
        yield Fault(kind, min(5 * mean_pause, chance.expovariate(1 / mean_pause)), chance.uniform(0.3, 2.0))


class Faults:
    """Lets faults happen until it is cancelled. `calm` is held by whoever wants none meanwhile."""

    def __init__(
        self, daemon: Daemon, mirror: Daemon, network: TornNetwork, schedule: Iterator[Fault], disk: Path | None
    ) -> None:
        """`disk` is the mount point of a small file system with the log directories."""
        self._daemon = daemon
        self._mirror = mirror
        self._network = network
        self._schedule = schedule
        self._disk = disk
        self.calm = asyncio.Lock()
        self.done: Counter[str] = Counter()

    async def run(self) -> None:
        """Let faults happen. Raises BrokerProcessError if the broker does not start again."""
        for fault in self._schedule:
            await asyncio.sleep(fault.pause)
            async with self.calm:
                await self._happen(fault)

    async def _happen(self, fault: Fault) -> None:
        if fault.kind == FULL and self._disk is None:
            return
        self.done[fault.kind] += 1
        if fault.kind in (KILL, RESTART):
            await asyncio.to_thread(self._daemon.restart, clean=fault.kind == RESTART)
        elif fault.kind == MIRROR:
            await asyncio.to_thread(self._mirror.restart, clean=False)
        elif fault.kind == CUT:
            await _cut(self._network)
        elif fault.kind == STALL:
            os.kill(self._daemon.pid, signal.SIGSTOP)
            try:
                await asyncio.sleep(fault.duration)
            finally:
                os.kill(self._daemon.pid, signal.SIGCONT)
        elif self._disk is not None:
            ballast = self._disk / "ballast"
            try:
                _fill(self._disk, ballast)
                await asyncio.sleep(fault.duration)
            finally:
                ballast.unlink()


async def _cut(network: TornNetwork) -> None:
    """Cut connections. By their number: after a kill it takes clients a while to have some again."""
    enough = network.cuts + _CUTS
    network.cut_rate = _CUT_RATE
    try:
        async with asyncio.timeout(_CUT_S):
            while network.cuts < enough:
                await asyncio.sleep(0.05)
    except TimeoutError:
        pass
    finally:
        network.cut_rate = 0.0


def _fill(disk: Path, ballast: Path) -> None:
    state = os.statvfs(disk)
    with ballast.open("wb") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, max(1, state.f_bavail * state.f_frsize))
        except OSError:
            pass  # the broker has taken some of it meanwhile; what is left is little
