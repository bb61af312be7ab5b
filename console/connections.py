"""Uvicorn's HTTP protocol with limits on what strangers may hold: it has none while it waits for the client.

It waits for the rest of a request, for the next one, and for the client to read: a response above what the buffers take
is not written on until the client has read some of it. The client has CLIENT_SECONDS_MAX for that, and again for each
PROGRESS_BYTES of a request and each buffer of a response. Where there are CONNECTIONS_MAX, a new one cuts off the
longest-waiting one; without such, it is closed itself.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final, cast

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

CONNECTIONS_MAX: Final = 200
"""With a header of 64 KiB or a form of 256 KiB each they take 50 MiB."""

CLIENT_SECONDS_MAX: Final = 60.0
PROGRESS_BYTES: Final = 1 << 20
"""Of a form that produces a record, which may have 64 MiB on a slow link."""

_logger = logging.getLogger(__name__)
# A stranger can cause as many warnings as it likes ("Invalid HTTP request received."). Errors are the console's bugs.
_logger.setLevel(logging.ERROR)


_scratch: Final = memoryview(bytearray(256 * 1024))
"""What TlsTransport decrypts into: it is read before any other connection's turn."""


class LimitedProtocol(H11Protocol):
    """One connection, directly on the event loop's transport or as the protocol of a TlsTransport."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.logger = _logger
        self._deadline: asyncio.TimerHandle | None = None
        self._received = 0
        """Bytes since the deadline was set."""

    @property
    def waits_for_client(self) -> bool:
        """Whether no complete request is being answered, or the client has to read first."""
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
        self._expect_client()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the client's time."""
        self._end_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Serve what has come; a request that makes progress has more time."""
        self._received += len(data)
        if self._received >= PROGRESS_BYTES and self.waits_for_client:
            self._expect_client()
        super().data_received(data)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where TlsTransport decrypts to."""
        return _scratch

    def buffer_updated(self, nbytes: int) -> None:
        """Serve what was decrypted."""
        self.data_received(bytes(_scratch[:nbytes]))

    def handle_events(self) -> None:
        """Serve what has come; a complete request has no deadline."""
        super().handle_events()
        self._work()

    def on_response_complete(self) -> None:
        """Expect the next request, or the client to read the rest of the last response."""
        self._expect_client()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Expect the client to read."""
        super().pause_writing()
        self._expect_client()

    def resume_writing(self) -> None:
        """Write on."""
        super().resume_writing()
        self._work()

    def _expect_client(self) -> None:
        self._end_deadline()
        self._received = 0
        self._deadline = self.loop.call_later(CLIENT_SECONDS_MAX, self.transport.abort)

    def _work(self) -> None:
        """End the client's time if there is something to do without it."""
        cycle: RequestResponseCycle | None = self.cycle
        has_request = cycle is not None and not cycle.more_body and not cycle.response_complete
        if has_request and not self.flow.write_paused:
            self._end_deadline()

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _due(self) -> float:
        return cast("asyncio.TimerHandle", self._deadline).when()
