"""A fetch that found less than its min_bytes: it waits for appends, at most max_wait_ms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.deferred import Deferred

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from barnabas.broker.partition import Partition
    from barnabas.protocol.messages.fetch import FetchResponse


class DelayedFetch:
    """Woken by every append to one of its partitions; reads again once enough bytes have come, or the time is up.

    How much came is told by the partitions' `appended_bytes`, so that a wake that is not enough costs two additions and
    no read.
    """

    __slots__ = (
        "_appended_at_start",
        "_ended",
        "_missing_bytes",
        "_partitions",
        "_read",
        "_still_here",
        "_timer",
        "response",
    )

    def __init__(
        self,
        partitions: Sequence[Partition],
        *,
        missing_bytes: int,
        max_wait_seconds: float,
        loop: asyncio.AbstractEventLoop,
        read: Callable[[], FetchResponse],
        still_here: Callable[[], bool],
        ended: Callable[[DelayedFetch], None],
    ) -> None:
        """`read` makes the final answer; `still_here` is false once a partition has gone; `ended` is called once."""
        self._partitions = partitions
        self._missing_bytes = missing_bytes
        self._read = read
        self._still_here = still_here
        self._ended = ended
        self._appended_at_start = self._appended()
        self.response: Deferred[FetchResponse] = Deferred(on_cancel=self._leave)
        for partition in partitions:
            partition.add_waiter(self, self._woken)
        self._timer = loop.call_later(max_wait_seconds, self.finish)

    def finish(self) -> None:
        """Answer with what there is now."""
        if self.response.done:
            return
        self._leave()
        self.response.resolve(self._read())

    def _woken(self) -> None:
        if self._appended() - self._appended_at_start >= self._missing_bytes or not self._still_here():
            self.finish()

    def _appended(self) -> int:
        return sum([partition.appended_bytes for partition in self._partitions])

    def _leave(self) -> None:
        self._timer.cancel()
        for partition in self._partitions:
            partition.remove_waiter(self)
        self._ended(self)
