"""Uvicorn's HTTP protocol with limits on what strangers may hold: it has none before a request is complete.

A connection has REQUEST_SECONDS_MAX for each request, its body included. Where there are CONNECTIONS_MAX, a new one
cuts off the oldest that waits for the rest of a request, or for the next one; without such, it is closed itself.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final, cast

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

CONNECTIONS_MAX: Final = 200
"""With a header of 64 KiB or a form of 256 KiB each they take 50 MiB."""

REQUEST_SECONDS_MAX: Final = 60.0

_logger = logging.getLogger(__name__)
# A stranger can cause as many warnings as it likes ("Invalid HTTP request received."). Errors are the console's bugs.
_logger.setLevel(logging.ERROR)


class LimitedProtocol(H11Protocol):
    """One connection."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.logger = _logger
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def waits_for_client(self) -> bool:
        """Whether no complete request is being answered."""
        return self._deadline is not None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room, and expect a request."""
        super().connection_made(transport)
        # Uvicorn's set has no order.
        own = [each for each in self.connections if isinstance(each, LimitedProtocol)]
        if len(own) > CONNECTIONS_MAX:
            waiting = [each for each in own if each.waits_for_client]
            oldest = min(waiting, key=LimitedProtocol._due, default=self)
            oldest.transport.abort()
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the time for a request."""
        self._end_deadline()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Serve what has come; a complete request has no deadline."""
        super().handle_events()
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.more_body and not cycle.response_complete:
            self._end_deadline()

    def on_response_complete(self) -> None:
        """Expect the next request."""
        self._expect_request()
        super().on_response_complete()

    def _expect_request(self) -> None:
        self._end_deadline()
        if not self.transport.is_closing():
            self._deadline = self.loop.call_later(REQUEST_SECONDS_MAX, self.transport.abort)

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _due(self) -> float:
        return cast("asyncio.TimerHandle", self._deadline).when()
