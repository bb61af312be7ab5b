"""An incremental fetch that found less than its min_bytes and waits for appends, at most max_wait_ms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.partitions.late_response import LateResponse

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from barnabas.broker.handlers.data.fetch_session import FetchSession, SessionPartition
    from barnabas.broker.partitions.late_response import Late, Read


class SessionFetchWait:
    """Counts the bytes that are appended to the session's partitions, and reads again when they are enough.

    The settled partitions watch their logs already; only the pending ones, which were read, are registered, by
    `IncrementalFetch.watch_pending`.
    """

    __slots__ = ("_ended", "_late", "_loop", "_missing_bytes", "_session")

    def __init__(
        self,
        session: FetchSession,
        *,
        missing_bytes: int,
        max_wait_seconds: float,
        loop: asyncio.AbstractEventLoop,
        read: Read,
        ended: Callable[[SessionFetchWait], None],
    ) -> None:
        """`read` builds the final response; `ended` is called once, when the wait is over or cancelled."""
        self._session = session
        self._missing_bytes = missing_bytes
        self._loop = loop
        self._ended = ended
        self._late = LateResponse(max_wait_seconds=max_wait_seconds, loop=loop, read=read, leave=self._leave)
        session.waiting = self

    @property
    def response(self) -> Late:
        """What `read` returns, or the exception that it raised."""
        return self._late.deferred

    def finish(self) -> None:
        """Answer with the records available now."""
        self._late.finish()

    def finish_soon(self) -> None:
        """Answer in the next turn of the loop: a response may serve the connection's next request."""
        self._leave_session()
        self._loop.call_soon(self.finish)

    def changed(self, entry: SessionPartition) -> None:
        """Answer if the partition is unavailable, or has brought the appended bytes to the request's min_bytes."""
        partition = entry.partition
        if partition is None or not partition.is_available:
            self.finish()
            return
        seen = self._session.bytes_of(partition)
        self._missing_bytes -= seen - entry.seen_bytes
        entry.seen_bytes = seen
        if self._missing_bytes <= 0:
            self.finish()

    def _leave(self) -> None:
        self._leave_session()
        self._ended(self)

    def _leave_session(self) -> None:
        if self._session.waiting is self:
            self._session.waiting = None
