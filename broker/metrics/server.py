"""The metrics port: one listening socket and one daemon thread that serves /metrics and /healthz.

The port is bound before the logs are loaded, by the caller's thread, so that a port in use is reported immediately.
The HTTP code (wsgiref and prometheus_client: 30 ms and 4 MiB) is imported when the first connection arrives: a broker
that is never scraped pays nothing. The thread sleeps in poll without a timeout while no connection is open.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.broker.metrics.state import BrokerState
from barnabas.broker.probes import BrokerProbes

if TYPE_CHECKING:
    import ssl

BACKLOG: Final = 128
SWEEP_SECONDS: Final = 1.0
"""While connections are open the thread wakes this often to close those that are over their time."""
CLOSE_SECONDS_MAX: Final = 2.0


NewContext = Callable[[], "ssl.SSLContext"]
"""Returns the newest TLS context; called for each connection."""


def start_metrics_server(
    host: str, port: int, *, probes: BrokerProbes, state: BrokerState, tls: NewContext | None = None
) -> MetricsServer:
    """Bind `host:port` (0 takes a free port) and serve it from a daemon thread, by HTTPS with `tls`.

    Raises OSError, whose text is one sentence with the address, when it cannot be bound.
    """
    return MetricsServer(_listen(host, port), probes=probes, state=state, tls=tls)


class MetricsServer:
    """The running metrics port. `port` is the one in use; `close` ends it."""

    def __init__(
        self, listener: socket.socket, *, probes: BrokerProbes, state: BrokerState, tls: NewContext | None
    ) -> None:
        self.port: int = listener.getsockname()[1]
        self._tls = tls
        self._listener = listener
        self._probes = probes
        self._state = state
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="barnabas-metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop accepting and abort responses in progress. Waits two seconds at most. May be called twice."""
        if self._wake_sender.fileno() < 0:
            return
        self._wake_sender.close()
        self._thread.join(CLOSE_SECONDS_MAX)

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector, self._listener, self._wake_receiver:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._wake_receiver, selectors.EVENT_READ)
            if self._is_closing(selector.select()):
                return
            # Imported here for its cost: see the top of the file.
            from barnabas.broker.metrics.http_server import BoundedHttpServer

            with BoundedHttpServer(self._listener, self._probes, self._state, self._tls) as server:
                while True:
                    ready = selector.select(SWEEP_SECONDS if server.open_connections else None)
                    if self._is_closing(ready):
                        return
                    if ready and not server.accept():
                        # Out of file descriptors: the listener stays readable, so wait instead of spinning.
                        selector.unregister(self._listener)
                        if self._is_closing(selector.select(SWEEP_SECONDS)):
                            return
                        selector.register(self._listener, selectors.EVENT_READ)
                    server.close_overdue()

    def _is_closing(self, ready: list[tuple[selectors.SelectorKey, int]]) -> bool:
        return any(key.fileobj is self._wake_receiver for key, _ in ready)


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening, non-blocking socket, on the first address of `host`, or on all interfaces if it is empty."""
    try:
        # Bytes: for a str, Python imports its IDNA codec, 5 ms of a start.
        name = host.encode("ascii") if host.isascii() else host
        family, kind, protocol, _, address = socket.getaddrinfo(
            name or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
            listener.setblocking(False)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise OSError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    return listener
