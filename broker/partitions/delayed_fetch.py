"""A fetch that found less than its min_bytes and waits for appends, at most max_wait_ms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.partitions.late_response import LateResponse

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from barnabas.broker.partitions.late_response import Late, Read
    from barnabas.broker.partitions.partition import Partition


def appended_bytes(partitions: Sequence[Partition], *, committed_only: bool, is_standby: bool = False) -> int:
    """Return the sum of the partitions' appended bytes that count for a fetch. Only differences mean something."""
    if is_standby:
        return sum([partition.written_bytes for partition in partitions])
    if committed_only:
        return sum([partition.stable_bytes for partition in partitions])
    return sum([partition.appended_bytes for partition in partitions])


class DelayedFetch:
    """Woken by every append to one of its partitions; reads again once enough bytes were appended, or time is up.

    It compares the partitions' `appended_bytes`, under read_committed `stable_bytes`, so that a wake-up that is not
    enough costs two additions and no read.
    """

    __slots__ = (
        "_appended_at_start",
        "_committed_only",
        "_ended",
        "_is_standby",
        "_late",
        "_missing_bytes",
        "_partitions",
    )

    def __init__(
        self,
        partitions: Sequence[Partition],
        *,
        missing_bytes: int,
        committed_only: bool,
        is_standby: bool = False,
        max_wait_seconds: float,
        loop: asyncio.AbstractEventLoop,
        read: Read,
        ended: Callable[[DelayedFetch], None],
    ) -> None:
        """`read` builds the final response; `ended` is called once, when the wait is over or cancelled.

        `is_standby`: a standby also waits for what consumers must not read yet.
        """
        self._partitions = partitions
        self._missing_bytes = missing_bytes
        self._committed_only = committed_only
        self._is_standby = is_standby
        self._ended = ended
        self._appended_at_start = self._appended()
        self._late = LateResponse(max_wait_seconds=max_wait_seconds, loop=loop, read=read, leave=self._leave)
        for partition in partitions:
            partition.add_waiter(self)

    @property
    def response(self) -> Late:
        """What `read` returns, or the exception that it raised."""
        return self._late.deferred

    def finish(self) -> None:
        """Answer with the records available now."""
        self._late.finish()

    def wake(self) -> None:
        """Answer if enough bytes were appended, or a partition is no longer available."""
        enough = self._appended() - self._appended_at_start >= self._missing_bytes
        if enough or not all(partition.is_available for partition in self._partitions):
            self.finish()

    def _appended(self) -> int:
        return appended_bytes(self._partitions, committed_only=self._committed_only, is_standby=self._is_standby)

    def _leave(self) -> None:
        for partition in self._partitions:
            partition.remove_waiter(self)
        self._ended(self)
