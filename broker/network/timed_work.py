"""Work of a request outside of its first turn, in the event loop or on a thread, and the processor time it takes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from time import thread_time
from types import coroutine
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from barnabas.broker.quotas.session_quota import SessionQuota

T = TypeVar("T")


async def run_on_thread(
    executor: Executor | None, quota: SessionQuota | None, function: Callable[..., T], *args: Any
) -> T:
    """Return what the function returns on a thread of `executor` (None: the event loop's own).

    Its processor time counts as the request's. `quota`: as for `TimedWork`.
    """
    spent = 0.0

    def work() -> T:
        nonlocal spent
        started = thread_time()
        try:
            return function(*args)
        finally:
            spent = thread_time() - started

    try:
        return await asyncio.get_running_loop().run_in_executor(executor, work)
    finally:
        if quota is not None:
            quota.spend(spent)


class TimedWork(Generic[T]):
    """Runs a coroutine and counts the processor time of its steps, in seconds.

    Not the time between: waits for the interpreter lock would count, and be longest while large requests are decoded.
    """

    __slots__ = ("_quota", "_work", "seconds")

    def __init__(self, work: Coroutine[Any, Any, T], quota: SessionQuota | None) -> None:
        """`quota`: that of the request, which is suspended, and counts the same time; None: none is set."""
        self._work = work
        self._quota = quota
        self.seconds = 0.0

    @coroutine
    def run(self) -> Generator[Any, Any, T]:
        """Run the coroutine to its end. Once only."""
        work, quota = self._work, self._quota
        send = step = partial(work.send, None)
        while True:
            if quota is not None:
                quota.resume()
            started = thread_time()
            try:
                awaited = step()
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                # This frame is in the tracebacks of the errors that `step` and `awaited` have: no cycles.
                step = send
                self.seconds += thread_time() - started
                if quota is not None:
                    quota.suspend()
            try:
                yield awaited
            except BaseException as error:  # noqa: BLE001 - a cancellation belongs to the coroutine
                step = partial(work.throw, error)
            finally:
                del awaited
