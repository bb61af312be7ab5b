"""An asyncio event loop whose time the test advances. Executors run their work inline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

T = TypeVar("T")
_TURNS = 6
"""Turns of the loop after a step: more than the longest chain of callbacks and task switches that a request takes."""


class ManualLoop(asyncio.SelectorEventLoop):
    """`time()` is in seconds and starts at 1000; `wall_ms` is the same clock in milliseconds."""

    def __init__(self) -> None:
        self._now = 1000.0
        super().__init__()

    def time(self) -> float:
        return self._now

    def wall_ms(self) -> int:
        """Return the wall clock."""
        return round(self._now * 1000)

    def run(self, call: Callable[[], T]) -> T:
        """Return `call()`, made while the loop is the running one."""

        async def run() -> T:
            return call()

        return self.run_until_complete(run())

    def settle(self) -> None:
        """Run everything that is due now."""
        self.run_until_complete(_turns())

    def pass_time(self, milliseconds: int) -> None:
        """Advance the clock, and run the timers in the order of their times."""
        end = self._now + milliseconds / 1000
        while True:
            self.settle()
            timers = [each for each in self._scheduled if not each.cancelled()]  # type: ignore[attr-defined]
            due = min((each.when() for each in timers), default=end)
            if due >= end:
                break
            self._now = max(self._now, due)
        self._now = end
        self.settle()


class InlineExecutor(Executor):
    """Runs work on the caller's thread, before `submit` returns."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 the future carries it
            future.set_exception(error)
        return future


class ManualExecutor(Executor):
    """Runs work on the caller's thread when the test asks for it."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()

        def run() -> None:
            future.set_result(fn(*args, **kwargs))

        self.waiting.append(run)
        return future

    def run_all(self) -> None:
        """Run everything that waits."""
        waiting, self.waiting = self.waiting, []
        for run in waiting:
            run()


async def _turns() -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)
