"""Partitions are created one at a time, those with a waiting request first."""

from __future__ import annotations

import asyncio

import pytest
import uvloop

from barnabas.broker.partitions import creation_steps as partition_steps
from barnabas.broker.partitions.creation_steps import PartitionSteps


@pytest.fixture(autouse=True)
def long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pauses so long that one which is not cut short fails the test by its timeout."""
    monkeypatch.setattr(partition_steps, "PAUSE_FACTOR", 10**9)


class Maker:
    """A creator of nothing: each number is done when the test allows it."""

    def __init__(self) -> None:
        self.began: list[int] = []
        self.made: list[int] = []
        self.go = asyncio.Semaphore(0)
        self.steps = PartitionSteps(self.made.append)

    async def make(self, number: int) -> bool:
        self.began.append(number)
        return await self.go.acquire()


async def test_wanted_ones_come_first_in_the_order_in_which_they_were_wanted() -> None:
    maker = Maker()
    maker.steps.want(4)
    running = asyncio.create_task(maker.steps.run(range(6), maker.make))
    await asyncio.sleep(0)
    maker.steps.want(2)
    maker.steps.want(5)
    maker.steps.want(2)
    for _ in range(3):
        maker.go.release()
    while len(maker.made) < 3:
        await asyncio.sleep(0)
    maker.steps.hurry()
    for _ in range(3):
        maker.go.release()
    await running
    assert maker.made == maker.began == [4, 2, 5, 0, 1, 3]


async def test_who_comes_during_a_pause_does_not_wait_for_its_end() -> None:
    maker = Maker()
    maker.steps.want(0)
    running = asyncio.create_task(maker.steps.run(range(50), maker.make))
    maker.go.release()
    while maker.made != [0]:
        await asyncio.sleep(0)
    maker.steps.want(49)
    maker.go.release()
    while maker.made != [0, 49]:
        await asyncio.sleep(0)
    assert maker.began == [0, 49]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def test_a_log_that_takes_less_than_a_millisecond_is_followed_by_a_pause() -> None:
    """The daemon's event loop counts in milliseconds: a log in memory would take none."""
    made: list[int] = []

    async def make(number: int) -> bool:
        made.append(number)
        return True

    async def run() -> None:
        steps = PartitionSteps(lambda number: None)
        steps.want(1)
        running = asyncio.create_task(steps.run(range(3), make))
        await asyncio.sleep(0.05)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())
    assert made == [1]


async def test_the_first_failure_ends_it() -> None:
    async def fail(number: int) -> bool:
        raise LookupError(number)

    with pytest.raises(LookupError):
        await PartitionSteps(lambda number: None).run(range(3), fail)
