"""The logs of a new topic made one by one, in the order in which somebody needs them.

A log is three syncs and some ms of Python, so all 50 of `__consumer_offsets` are a good part of a second in which a
thread competes with the event loop and the disk. Nobody waits for a log that is not his: one that is wanted is made
next, and before one that nobody wants yet there is a pause of PAUSE_FACTOR times what the last one took. So the rest
takes a quarter of one processor at most, however slow the disk is. A broker that stops calls `hurry`: a clean stop
leaves no log unmade.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

PAUSE_FACTOR: Final = 3


class PartitionSteps:
    """In the event loop only. `made` is called with each number, also where its log could not be made."""

    def __init__(self, made: Callable[[int], None]) -> None:
        self._made = made
        self._wanted: dict[int, None] = {}
        self._woken = asyncio.Event()
        self._hurrying = False

    def want(self, number: int) -> None:
        """Somebody waits for this one."""
        self._wanted[number] = None
        self._woken.set()

    def hurry(self) -> None:
        """No more pauses."""
        self._hurrying = True
        self._woken.set()

    async def run(self, numbers: Iterable[int], make: Callable[[int], Awaitable[None]]) -> None:
        """Call `make` with each of the numbers, one after the other. Raises what it raises."""
        loop = asyncio.get_running_loop()
        left = dict.fromkeys(numbers)
        took_s = 0.0
        while left:
            number = self._next_wanted(left)
            if number is None:
                await self._pause(PAUSE_FACTOR * took_s)
                number = self._next_wanted(left)
            if number is None:
                number = next(iter(left))
            del left[number]
            started = loop.time()
            await make(number)
            took_s = loop.time() - started
            self._made(number)

    def _next_wanted(self, left: Iterable[int]) -> int | None:
        return next((number for number in self._wanted if number in left), None)

    async def _pause(self, seconds: float) -> None:
        if self._hurrying:
            return
        self._woken.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            pass
