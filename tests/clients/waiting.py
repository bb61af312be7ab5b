"""Bounded waits for tests, on conditions instead of the clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

BOUND_S = 30.0


async def until(condition: Callable[[], bool], what: str = "the condition") -> None:
    """Let the loop turn until `condition` holds. Fails after BOUND_S."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + BOUND_S
    while not condition():
        assert loop.time() < deadline, f"{what} did not come true within {BOUND_S} s"
        await asyncio.sleep(0.001)


async def turns(count: int = 20) -> None:
    """Run this many iterations of the loop, including sockets, so that immediate work is done."""
    for _ in range(count):
        await asyncio.sleep(0.0005)
