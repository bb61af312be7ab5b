"""Acceptor: accepts the connections of one listener, and refuses those above the limits before anything is allocated.

Own code instead of the event loop's server, which cannot refuse a socket before its transport exists, nor stop
accepting for a while.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.broker.network.session import java_host_address
from barnabas.broker.repeated_warnings import Event

if TYPE_CHECKING:
    from barnabas.broker.network.connection_quotas import ConnectionQuotas
    from barnabas.broker.probes import ConnectionProbe
    from barnabas.broker.quotas.connection_rates import ConnectionRates
    from barnabas.broker.repeated_warnings import RepeatedWarnings

logger = logging.getLogger(__name__)

ACCEPTS_PER_TURN: Final = 64
"""A flood of connections must leave time for requests."""

OUT_OF_DESCRIPTORS_SECONDS: Final = 1.0
"""Pause after a failed accept: the listening socket stays readable, and the loop would spin."""

HELD_MAX: Final = 256
"""Sockets above the rate of their address that are kept at a time: each takes a descriptor."""

_Held = dict[socket.socket, asyncio.TimerHandle]

_OUT_OF_RESOURCES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Acceptor:
    """Accepts on one bound socket, which it owns from `start` on."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listener: str,
        bound: socket.socket,
        quotas: ConnectionQuotas,
        rates: ConnectionRates,
        probe: ConnectionProbe,
        warnings: RepeatedWarnings,
        new_protocol: Callable[[str], asyncio.BaseProtocol],
    ) -> None:
        """`new_protocol` gets the peer's address as Java prints it; the protocol calls `quotas.closed` at its end."""
        self._loop = loop
        self._listener = listener
        self._socket = bound
        self._quotas = quotas
        self._rates = rates
        self._refused: _Held = {}
        """Connections above the rate of their address, which wait unread for their end, oldest first."""
        self._delayed: _Held = {}
        """Connections above the listener's rate, which are served later. Few: the listener pauses for each."""
        self._probe = probe
        self._warnings = warnings
        self._new_protocol = new_protocol
        self._connecting: set[asyncio.Task[None]] = set()
        self._resume: asyncio.TimerHandle | None = None
        self._accepting = False

    def start(self, backlog: int) -> None:
        """Listen and accept."""
        self._socket.listen(backlog)
        self._listen()

    def pause(self, seconds: float) -> None:
        """Leave new connections in the kernel's queue for a while."""
        if self._accepting:
            self._accepting = False
            self._loop.remove_reader(self._socket.fileno())
            self._resume = self._loop.call_later(seconds, self._listen)

    def close(self) -> None:
        """Stop accepting and close the socket. May be called twice."""
        if self._resume is not None:
            self._resume.cancel()
            self._resume = None
        if self._accepting:
            self._accepting = False
            self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        for held in (self._refused, self._delayed):
            for accepted, timer in held.items():
                timer.cancel()
                accepted.close()
            held.clear()

    def _listen(self) -> None:
        self._resume = None
        self._accepting = True
        self._loop.add_reader(self._socket.fileno(), self._accept_some)

    def _accept_some(self) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            if not self._accepting:
                return
            try:
                accepted, address = self._socket.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno not in _OUT_OF_RESOURCES:
                    continue  # the peer has gone already: ECONNABORTED and errors of its network
                logger.error("cannot accept connections on %s: %s", self._listener, error.strerror)
                self.pause(OUT_OF_DESCRIPTORS_SECONDS)
                return
            self._accepted(accepted, address)

    def _accepted(self, accepted: socket.socket, address: tuple[str, int]) -> None:
        host = java_host_address(address[0])
        refusal = self._quotas.refusal(self._listener, host)
        if refusal is not None:
            accepted.close()
            self._probe.count_refused(refusal.reason)
            self._warnings.warn(
                logger,
                Event(host, "a connection was refused", f" listener={self._listener} reason={refusal.reason}"),
                "refusing the connection of %s:%d: %s",
                address[0],
                address[1],
                refusal.text,
            )
            return
        seconds = self._rates.wait_of_address(host)
        if seconds > 0:
            self._probe.count_refused("connection_rate_per_ip")
            self._close_oldest_refused()
            self._hold(self._refused, accepted, seconds, accepted.close)
            return
        seconds = self._rates.wait_of_listener(self._listener)
        if seconds > 0:
            self.pause(seconds)
            self._hold(self._delayed, accepted, seconds, lambda: self._begin(accepted, host))
            return
        self._begin(accepted, host)

    def _close_oldest_refused(self) -> None:
        """Make room for another refused connection."""
        if len(self._refused) >= HELD_MAX:
            oldest = next(iter(self._refused))
            self._refused.pop(oldest).cancel()
            oldest.close()

    def _hold(self, held: _Held, accepted: socket.socket, seconds: float, then: Callable[[], None]) -> None:
        """Keep a socket unread for a while."""

        def end() -> None:
            del held[accepted]
            then()

        held[accepted] = self._loop.call_later(seconds, end)

    def _begin(self, accepted: socket.socket, host: str) -> None:
        accepted.setblocking(False)
        self._quotas.opened(self._listener, host)
        task = self._loop.create_task(self._connect(accepted, host))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect(self, accepted: socket.socket, host: str) -> None:
        """Give the socket to the event loop."""
        try:
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(lambda: self._new_protocol(host), accepted)
        except OSError as error:
            # Before connection_made, so the protocol will not report its end.
            self._quotas.closed(self._listener, host)
            accepted.close()
            self._warnings.warn(
                logger,
                Event(host, "a connection ended while it was accepted"),
                "a connection of %s ended while it was accepted: %s",
                host,
                error,
                level=logging.INFO,
            )
