"""The response of a fetch that waits: its deadline, and the read at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.network.deferred import Deferred

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from barnabas.protocol.messages.data.fetch import FetchResponse


class LateResponse:
    """Answers once: when `finish` is called, or when time is up. A cancelled one never answers."""

    __slots__ = ("_leave", "_read", "_timer", "deferred")

    def __init__(
        self,
        *,
        max_wait_seconds: float,
        loop: asyncio.AbstractEventLoop,
        read: Callable[[], FetchResponse],
        leave: Callable[[], None],
    ) -> None:
        """`leave` is called once, when the wait is over or cancelled; after it, `read` builds the final response."""
        self._read = read
        self._leave = leave
        self.deferred: Deferred[FetchResponse | Exception] = Deferred(on_cancel=self._end)
        """An exception is one raised by `read`: it belongs to this request, not to the append that woke it."""
        self._timer = loop.call_later(max_wait_seconds, self.finish)

    def finish(self) -> None:
        """Answer with the records available now."""
        if self.deferred.done:
            return
        read = self._read
        self._end()
        response: FetchResponse | Exception
        try:
            response = read()
        except Exception as error:  # noqa: BLE001 - see `deferred`
            response = error
        self.deferred.resolve(response)

    def _end(self) -> None:
        leave = self._leave
        self._timer.cancel()
        del self._timer, self._leave, self._read  # they refer to the wait, and to the request: cycles
        leave()
