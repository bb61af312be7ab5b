"""The response of a fetch that waits: its deadline, and the read at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.broker.network.deferred import Deferred

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine

    from barnabas.protocol.messages.data.fetch import FetchResponse

    Read = Callable[[], FetchResponse | Coroutine[Any, Any, FetchResponse]]
    """Builds the final response of a wait. A coroutine needs several turns of the event loop."""

    Late = Deferred[FetchResponse | Coroutine[Any, Any, FetchResponse] | Exception]
    """The response; a coroutine that returns it; or an exception of the read, which belongs to this request, not to the
    append that woke it."""


class LateResponse:
    """Answers once: when `finish` is called, or when time is up. A cancelled one never answers."""

    __slots__ = ("_leave", "_read", "_timer", "deferred")

    def __init__(
        self,
        *,
        max_wait_seconds: float,
        loop: asyncio.AbstractEventLoop,
        read: Read,
        leave: Callable[[], None],
    ) -> None:
        """`leave` is called once, when the wait is over or cancelled; after it, `read` builds the final response."""
        self._read = read
        self._leave = leave
        self.deferred: Late = Deferred(on_cancel=self._end)
        self._timer = loop.call_later(max_wait_seconds, self.finish)

    def finish(self) -> None:
        """Answer with the records available now."""
        if self.deferred.done:
            return
        read = self._read
        self._end()
        response: FetchResponse | Coroutine[Any, Any, FetchResponse] | Exception
        try:
            response = read()
        except Exception as error:  # noqa: BLE001 - see `Late`
            response = error
        self.deferred.resolve(response)

    def _end(self) -> None:
        leave = self._leave
        self._timer.cancel()
        del self._timer, self._leave, self._read  # they refer to the wait, and to the request: cycles
        leave()
