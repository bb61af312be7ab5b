"""All connections of a broker: which have been idle for too long, and how they end.

Properties: connections.max.idle.ms, socket.request.max.bytes.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from barnabas.broker.network.connection import Connection
    from barnabas.broker.network.connection_limit import ConnectionLimit
    from barnabas.broker.network.dispatch import Dispatcher
    from barnabas.broker.probes import ConnectionProbe

logger = logging.getLogger(__name__)

IDLE_SWEEPS: Final = 10
"""How often within connections.max.idle.ms the idle connections are looked for: they live at most a tenth longer."""

MIN_SWEEP_SECONDS: Final = 0.05
"""Not oftener, however small connections.max.idle.ms is."""


class ConnectionRegistry:
    """What the connections share, and the set of them."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        dispatcher: Dispatcher,
        blocking_io: Executor,
        probe: ConnectionProbe,
        *,
        max_frame_bytes: int,
        limit: ConnectionLimit,
        max_idle_seconds: float | None,
    ) -> None:
        """`max_idle_seconds` None: connections may idle for ever."""
        self.loop = loop
        self.dispatcher = dispatcher
        self.blocking_io = blocking_io
        self.probe = probe
        self.max_frame_bytes = max_frame_bytes
        self._limit = limit
        self._max_idle_seconds = max_idle_seconds
        self._connections: set[Connection] = set()
        self._draining = False
        self._all_closed = asyncio.Event()
        self._all_closed.set()
        self._sweep: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to look for idle connections."""
        if self._max_idle_seconds is not None:
            self._schedule_sweep(max(self._max_idle_seconds / IDLE_SWEEPS, MIN_SWEEP_SECONDS))

    def opened(self, connection: Connection) -> None:
        """A connection was made: keep it, or close it at once when there are too many or the broker stops."""
        refusal = "the broker is stopping" if self._draining else self._limit.refusal(len(self._connections))
        if refusal is not None:
            reason = "draining" if self._draining else "max_connections"
            self.probe.count_refused(reason)
            logger.warning("refusing the connection of %s: %s", connection.session, refusal)
            connection.abort(reason)
            return
        self._connections.add(connection)
        self._all_closed.clear()
        self.probe.count_accepted()

    def closed(self, connection: Connection) -> None:
        """A connection has gone; `connection.close_reason` says why."""
        if connection in self._connections:
            self._connections.remove(connection)
            self.probe.count_closed(connection.close_reason)
            if not self._connections:
                self._all_closed.set()

    async def drain(self, timeout_seconds: float) -> None:
        """Let every connection finish the request at hand, then close it; after the timeout cut the rest off."""
        self._draining = True
        if self._sweep is not None:
            self._sweep.cancel()
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

    def _schedule_sweep(self, seconds: float) -> None:
        self._sweep = self.loop.call_later(seconds, self._close_idle, seconds)

    def _close_idle(self, seconds: float) -> None:
        assert self._max_idle_seconds is not None
        before = self.loop.time() - self._max_idle_seconds
        for connection in list(self._connections):
            if connection.last_active >= before:
                continue
            if connection.waits_for_broker:
                continue  # a long poll or a flush is ours to answer; it is no idleness of the client
            logger.info("closing the connection of %s: idle for connections.max.idle.ms", connection.session)
            connection.abort("idle")
        self._schedule_sweep(seconds)
