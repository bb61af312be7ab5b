"""A memory budget in bytes, with a queue of waiters.

First come, first served: a small record does not overtake a waiting large one, which would starve otherwise.
"""

from __future__ import annotations

import asyncio
from collections import deque

from barnabas.clients.errors import ClientError


class MemoryLimit:
    """`available` of `limit` bytes are free. Use it in the event loop's thread only."""

    __slots__ = ("_waiters", "available", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.available = limit
        self._waiters: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def has_waiters(self) -> bool:
        """Whether a call of `take` is waiting."""
        return bool(self._waiters)

    def try_take(self, size: int) -> bool:
        """Take `size` bytes if they are free and there are no waiters. Returns whether it did."""
        if size > self.available or self._waiters:
            return False
        self.available -= size
        return True

    async def take(self, size: int, timeout_s: float) -> None:
        """Take `size` bytes (at most `limit`), waiting for them. Raises TimeoutError, having taken nothing."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (size, future)
        self._waiters.append(entry)
        self._grant()
        try:
            async with asyncio.timeout(timeout_s):
                await future
        except BaseException:
            if future.done() and not future.cancelled() and future.exception() is None:
                self.release(size)  # granted in the same moment as the caller gave up
            else:
                if entry in self._waiters:
                    self._waiters.remove(entry)
                self._grant()  # the next waiter may need less
            raise

    def release(self, size: int) -> None:
        """Return `size` bytes."""
        self.available += size
        self._grant()

    def fail_waiters(self, error: ClientError) -> None:
        """Fail all waiters, because the owner is closing."""
        while self._waiters:
            _, future = self._waiters.popleft()
            if not future.done():
                future.set_exception(error)

    def _grant(self) -> None:
        while self._waiters and self._waiters[0][0] <= self.available:
            size, future = self._waiters.popleft()
            if not future.done():
                self.available -= size
                future.set_result(None)
