"""Creation of a new topic's logs one by one, in the order in which they are needed.

A log takes three syncs and some ms of Python, so the 50 logs of `__consumer_offsets` take a third of a second (1.3 s on
a busy machine) in which a thread competes with the event loop and the disk. A group therefore waits only for its own
partition: a requested log is created next, and before each other log there is a pause of PAUSE_FACTOR times what the
last one took. That takes a quarter of one processor at most, however slow the disk is. A broker that stops calls
`hurry`: a clean stop creates all remaining logs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from time import perf_counter
from typing import Final

PAUSE_FACTOR: Final = 3


class PartitionSteps:
    """Event loop only. `created` is called with each number, also if creating its log failed.

    `made`: how many logs were created.
    """

    def __init__(self, created: Callable[[int], None]) -> None:
        self._created = created
        self._wanted: dict[int, None] = {}
        self._woken = asyncio.Event()
        self._hurrying = False
        self.made = 0

    def want(self, number: int) -> None:
        """Create this log next: a request waits for it."""
        self._wanted[number] = None
        self._woken.set()

    def hurry(self) -> None:
        """Create the remaining logs without pauses."""
        self._hurrying = True
        self._woken.set()

    async def run(self, numbers: Iterable[int], create: Callable[[int], Awaitable[bool]]) -> None:
        """Call `create` with each number, one at a time; it returns whether the log exists. Raises what it raises."""
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
            started = perf_counter()
            self.made += await create(number)
            took_s = perf_counter() - started
            self._created(number)

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
