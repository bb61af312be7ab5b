"""All connections of a broker: admission, closing of idle ones, and draining at the stop.

Properties: connections.max.idle.ms, socket.request.max.bytes, queued.max.request.bytes.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from barnabas.broker.network.receive_memory import ReceiveMemory, default_limit
from barnabas.broker.repeated_warnings import RepeatedWarnings

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from barnabas.broker.network.connection_quotas import ConnectionQuotas
    from barnabas.broker.network.dispatch import Dispatcher
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ConnectionProbe
    from barnabas.broker.quotas.manager import QuotaManager

logger = logging.getLogger(__name__)

IDLE_SWEEPS: Final = 10
"""Sweeps per connections.max.idle.ms: an idle connection is closed at most a tenth of that too late."""

MIN_SWEEP_SECONDS: Final = 0.05
"""Minimum interval, however small connections.max.idle.ms is."""


CLOSES_PER_TURN: Final = 64
"""Connections that are closed in one turn of the event loop, at 25 us each."""


class Registered(Protocol):
    """What the registry needs of a connection. A Protocol, because the connection's module imports this one."""

    session: Session
    close_reason: str

    @property
    def last_active(self) -> float:
        """Time of the loop at which bytes were last received."""
        ...

    @property
    def waits_for_broker(self) -> bool:
        """Whether the client waits for a response."""
        ...

    def close(self, reason: str) -> None:
        """Close after everything written has been sent."""
        ...

    def drain(self) -> None:
        """Finish the current request, then close."""
        ...

    def mute(self, seconds: float) -> None:
        """Serve no request for this time."""
        ...

    def trim(self, before: float) -> None:
        """Give back the memory of an empty buffer, unless bytes came after `before`."""
        ...

    def abort(self, reason: str) -> None:
        """Close immediately."""
        ...


def _without_authorizer(session: Session) -> None:
    """Leave `session.access` None: everything is allowed."""


TRIM_SECONDS: Final = 10.0
"""A connection without a request for this long gives the pages of its receive buffer back."""

TURN_SECONDS: Final = 0.001
"""Time for the pipelined requests of one connection before others have their turn."""


class ConnectionRegistry:
    """The set of connections, and the parts that they share."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        dispatcher: Dispatcher,
        blocking_io: Executor,
        probe: ConnectionProbe,
        *,
        max_frame_bytes: int,
        quotas: ConnectionQuotas,
        max_idle_seconds: float | None,
        receive_memory_bytes: int = -1,
        bind_access: Callable[[Session], None] | None = None,
        client_quotas: QuotaManager | None = None,
    ) -> None:
        """`max_idle_seconds` None: connections may be idle forever. `bind_access` is the authorizer's.

        `client_quotas` None: clients have none. `receive_memory_bytes` not positive: the default.
        """
        self.loop = loop
        self.dispatcher = dispatcher
        self.blocking_io = blocking_io
        self.probe = probe
        self.max_frame_bytes = max_frame_bytes
        self.turn_seconds = TURN_SECONDS
        self.warnings = RepeatedWarnings(loop)
        """About connections that the broker refuses or closes."""
        limit = receive_memory_bytes if receive_memory_bytes > 0 else default_limit()
        self.memory = ReceiveMemory(limit, loop, probe, self.warnings)
        self.bind_access: Callable[[Session], None] = _without_authorizer if bind_access is None else bind_access
        """Sets `session.access` by the session's principal and host: call it whenever the principal changes."""
        self.quotas = quotas
        self._client_quotas = client_quotas
        self._max_idle_seconds = max_idle_seconds
        self._connections: set[Registered] = set()
        self._ended: deque[Registered] = deque()
        self._draining = False
        self._all_closed = asyncio.Event()
        self._all_closed.set()
        self._sweep: asyncio.TimerHandle | None = None
        self._trim: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start the sweeps for idle connections."""
        self._trim = self.loop.call_later(TRIM_SECONDS, self._trim_idle)
        if self._max_idle_seconds is not None:
            self._schedule_sweep(max(self._max_idle_seconds / IDLE_SWEEPS, MIN_SWEEP_SECONDS))

    def opened(self, connection: Registered) -> None:
        """Register a new connection, or close it if the broker is stopping."""
        if self._draining:
            self.probe.count_refused("draining")
            logger.warning("refusing the connection of %s: the broker is stopping", connection.session)
            connection.abort("draining")
            return
        self._connections.add(connection)
        if self._client_quotas is not None:
            self._client_quotas.opened(connection)
        self._all_closed.clear()
        self.probe.count_accepted()

    def close_soon(self, connection: Registered) -> None:
        """Close a connection whose client has ended it. When thousands end together, others are served in between."""
        if not self._ended:
            self.loop.call_soon(self._close_ended)
        self._ended.append(connection)

    def _close_ended(self) -> None:
        try:
            for _ in range(min(CLOSES_PER_TURN, len(self._ended))):
                self._ended.popleft().close("client")
        finally:
            if self._ended:
                self.loop.call_soon(self._close_ended)

    def closed(self, connection: Registered) -> None:
        """Remove a closed connection and count its `close_reason`."""
        self.quotas.closed(connection.session.listener.name, connection.session.host)
        if connection in self._connections:
            self._connections.remove(connection)
            if self._client_quotas is not None:
                self._client_quotas.closed(connection)
            self.probe.count_closed(connection.close_reason)
            if not self._connections:
                self._all_closed.set()

    async def drain(self, timeout_seconds: float) -> None:
        """Let every connection finish its current request, then close it; abort the rest after the timeout."""
        self._draining = True
        if self._sweep is not None:
            self._sweep.cancel()
        if self._trim is not None:
            self._trim.cancel()
        for connection in list(self._connections):
            connection.drain()
        try:
            await asyncio.wait_for(self._all_closed.wait(), timeout_seconds)
        except TimeoutError:
            logger.warning(
                "cutting off %d connections that did not finish in %s s", len(self._connections), timeout_seconds
            )
            for connection in list(self._connections):
                connection.abort("draining")

    def _trim_idle(self) -> None:
        self._trim = self.loop.call_later(TRIM_SECONDS, self._trim_idle)  # first: an error must not end the sweeps
        before = self.loop.time() - TRIM_SECONDS
        for connection in list(self._connections):
            connection.trim(before)

    def _schedule_sweep(self, seconds: float) -> None:
        self._sweep = self.loop.call_later(seconds, self._close_idle, seconds)

    def _close_idle(self, seconds: float) -> None:
        assert self._max_idle_seconds is not None
        self._schedule_sweep(seconds)  # first, as above
        before = self.loop.time() - self._max_idle_seconds
        for connection in list(self._connections):
            if connection.last_active >= before:
                continue
            if connection.waits_for_broker:
                continue  # the client waits for a long poll or a flush: it is not idle
            logger.info("closing the connection of %s: idle for connections.max.idle.ms", connection.session)
            connection.abort("idle")
