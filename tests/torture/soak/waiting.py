"""Waiting for a broker to have done everything."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

WAIT_S = 60.0


async def lacking_after_a_time(find_lacking: Callable[[], Awaitable[list[str]]], pause_s: float) -> list[str]:
    """Ask again and again what is lacking; return [] once that is nothing, or the last answer after WAIT_S."""
    lacking = ["the mirror does not answer"]
    try:
        async with asyncio.timeout(WAIT_S):
            while lacking := await find_lacking():
                await asyncio.sleep(pause_s)
    except TimeoutError:
        pass
    return lacking
