"""Mirrors that stand still for a planned switch, which is given up."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from barnabas.broker.mirrors.broker_mirrors import BrokerMirrors


class SlowManager:
    """A MirrorManager that stops when it may."""

    def __init__(self, running: set[SlowManager]) -> None:
        self._running = running
        self.may_stop = asyncio.Event()

    def apply(self, _: object) -> None:
        self._running.add(self)

    async def stop(self) -> None:
        await self.may_stop.wait()
        self._running.remove(self)


class HeldMirrors(BrokerMirrors):
    """Mirrors with such managers."""

    def __init__(self) -> None:
        image: Any = SimpleNamespace(mirrors=SimpleNamespace(definitions={"east": None}))
        unused: Any = None
        super().__init__(SimpleNamespace(image=image), unused, unused, unused, unused, unused)
        self.managers: list[SlowManager] = []
        self.running: set[SlowManager] = set()

    def _make_manager(self, log_manager: object) -> Any:
        self.managers.append(SlowManager(self.running))
        return self.managers[-1]


async def test_mirrors_that_are_released_while_they_stop_begin_once_they_have_stopped() -> None:
    mirrors = HeldMirrors()
    log_manager: Any = object()
    mirrors.start(log_manager)
    (earlier,) = mirrors.managers
    holding = asyncio.create_task(mirrors.hold())
    await asyncio.sleep(0)
    mirrors.release()
    mirrors.apply(mirrors._store.image)
    assert mirrors.running == {earlier}
    earlier.may_stop.set()
    await holding
    assert len(mirrors.managers) == 2
    assert mirrors.running == {mirrors.managers[1]}
    mirrors.managers[1].may_stop.set()
    await mirrors.stop()
    assert mirrors.running == set()


async def test_a_second_switch_waits_for_the_stop_that_the_first_one_began() -> None:
    mirrors = HeldMirrors()
    log_manager: Any = object()
    mirrors.start(log_manager)
    first = asyncio.create_task(mirrors.hold())
    await asyncio.sleep(0)
    first.cancel()
    mirrors.release()
    second = asyncio.create_task(mirrors.hold())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not second.done()
    mirrors.managers[0].may_stop.set()
    await second
    assert (mirrors.running, len(mirrors.managers)) == (set(), 1)
    mirrors.release()
    assert mirrors.running == {mirrors.managers[1]}
