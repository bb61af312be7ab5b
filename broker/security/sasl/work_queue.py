"""Steps of exchanges that would block the event loop: they run on threads, a few at a time.

The threads are shared with cold reads, which clients that are not authenticated must not be able to hold up. Each
connection has at most one step, so the queue is as long as there are connections.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Executor

AT_A_TIME: Final = 2
"""Half of the broker's threads for blocking I/O."""


class Job:
    """One step. `cancel` drops it, or only its result if it runs already."""

    __slots__ = ("done", "is_cancelled", "run")

    def __init__(self, run: Callable[[], Any], done: Callable[[Any, BaseException | None], None]) -> None:
        self.run = run
        self.done = done
        self.is_cancelled = False

    def cancel(self) -> None:
        """Never call `done`."""
        self.is_cancelled = True


class WorkQueue:
    """One broker's steps, in the order of their submission. For the event loop's thread only."""

    def __init__(self, loop: asyncio.AbstractEventLoop, executor: Executor) -> None:
        self._loop = loop
        self._executor = executor
        self._waiting: deque[Job] = deque()
        self._running = 0

    def submit(self, run: Callable[[], Any], done: Callable[[Any, BaseException | None], None]) -> Job:
        """Run `run` on a thread, then `done(result, error)` in the loop."""
        job = Job(run, done)
        self._waiting.append(job)
        self._start()
        return job

    def _start(self) -> None:
        while self._waiting and self._running < AT_A_TIME:
            job = self._waiting.popleft()
            if job.is_cancelled:
                continue
            self._running += 1
            future = self._loop.run_in_executor(self._executor, job.run)
            future.add_done_callback(lambda ended, job=job: self._ended(job, ended))  # type: ignore[misc]

    def _ended(self, job: Job, future: asyncio.Future[Any]) -> None:
        self._running -= 1
        self._start()  # first: whatever comes of this step, those behind it go on
        error = future.exception()
        if not job.is_cancelled:
            job.done(None if error is not None else future.result(), error)
