"""HTTP server of the metrics port: wsgiref for the protocol, prometheus_client for the text, limits on connections.

Imported only when the first connection arrives (see `server`). HTTP/1.0, one request per connection, one thread per
connection. The threads and the event loop never wait for each other.

Strangers must not keep a probe away. A connection has `REQUEST_SECONDS_MAX` for its request, the TLS handshake
included, and `CONNECTION_SECONDS_MAX` for the response. A host may have `HOST_REQUESTS_MAX` requests. Where there are
`CONNECTIONS_MAX` connections, a new one cuts off one that has sent no request: the oldest of the host that has most of
these. If all have sent one, it cuts off the oldest of the host with most, unless that is the new one's. So a host with
one connection is safe from the others. Connections of this machine, such as those of `barnabas health`, have as many
places of their own: nobody else can take a probe from within away.
"""

from __future__ import annotations

import errno
import logging
import socket
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from barnabas.broker.metrics.application import make_application
from barnabas.broker.metrics.state import BrokerState
from barnabas.broker.probes import BrokerProbes

if TYPE_CHECKING:
    from barnabas.broker.metrics.server import NewContext

CONNECTIONS_MAX: Final = 8
HOST_REQUESTS_MAX: Final = CONNECTIONS_MAX // 2
REQUEST_SECONDS_MAX: Final = 5.0
CONNECTION_SECONDS_MAX: Final = 30.0

_OUT_OF_DESCRIPTORS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Open:
    """A connection that is being served."""

    host: str
    is_own: bool
    """Whether it comes from this machine."""
    deadline: float
    has_request: bool = False


class _QuietHandler(WSGIRequestHandler):
    """Handler of one request, which logs broken requests at debug level and nothing else."""

    server: BoundedHttpServer
    timeout = CONNECTION_SECONDS_MAX
    error_message_format = "%(message)s\n"
    error_content_type = "text/plain; charset=utf-8"

    def parse_request(self) -> bool:
        """Read the request; return whether it is answered by the application."""
        if not super().parse_request():
            return False
        if self.server.begin_answer(self.connection):
            return True
        self.send_error(503, f"{HOST_REQUESTS_MAX} requests of this host are being answered already")
        return False

    def address_string(self) -> str:
        # Overridden because older versions of the inherited method query a name server for each request.
        return str(self.client_address[0])

    def log_message(self, format: str, *args: Any) -> None:
        logger.debug("metrics port: %s", format % args)


class BoundedHttpServer(ThreadingMixIn, WSGIServer):
    """WSGI server on an open listening socket. The owner calls `accept` when the socket is readable."""

    daemon_threads = True
    block_on_close = False
    timeout = 0

    def __init__(
        self, listener: socket.socket, probes: BrokerProbes, state: BrokerState, tls: NewContext | None
    ) -> None:
        address = listener.getsockname()
        super().__init__(address, _QuietHandler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        # server_bind would set these too, but looks up the host's full name.
        self.server_name, self.server_port = str(address[0]), int(address[1])
        self.setup_environ()
        self.set_app(make_application(probes, state))
        self._tls = tls
        self._open: dict[socket.socket, _Open] = {}
        """Oldest first."""
        self._lock = threading.Lock()
        self._accept_failed = False

    @property
    def open_connections(self) -> int:
        """Number of connections being served."""
        return len(self._open)

    def accept(self) -> bool:
        """Serve one connection in a thread. Returns False if the process is out of file descriptors."""
        self._accept_failed = False
        self.handle_request()
        return not self._accept_failed

    def close_overdue(self) -> None:
        """Shut down connections past their deadline; their threads then fail and close them."""
        now = time.monotonic()
        with self._lock:
            overdue = [connection for connection, each in self._open.items() if each.deadline < now]
            for connection in overdue:
                _shut_down(connection)

    def server_close(self) -> None:
        """Close the listener and shut down every connection."""
        with self._lock:
            for connection in self._open:
                _shut_down(connection)
        super().server_close()

    def begin_answer(self, connection: socket.socket) -> bool:
        """Note that a request is complete. Returns False if its host has too many, or it was cut off."""
        with self._lock:
            own = self._open.get(connection)
            if own is None:
                return False
            if sum(each.has_request and each.host == own.host for each in self._open.values()) >= HOST_REQUESTS_MAX:
                logger.debug("metrics port: %s has %d requests already", own.host, HOST_REQUESTS_MAX)
                return False
            own.has_request = True
            own.deadline = time.monotonic() + CONNECTION_SECONDS_MAX
        return True

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; note whether a failure was due to a lack of file descriptors."""
        try:
            accepted, address = self.socket.accept()
        except OSError as error:
            self._accept_failed = error.errno in _OUT_OF_DESCRIPTORS
            raise
        if self._tls is None:
            return accepted, address
        # The handshake is the connection's own thread's: `finish_request`.
        return self._tls().wrap_socket(accepted, server_side=True, do_handshake_on_connect=False), address

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in its thread, after the TLS handshake if there is one."""
        if self._tls is not None:
            request.settimeout(CONNECTION_SECONDS_MAX)
            request.do_handshake()
        super().finish_request(request, client_address)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Return whether there is room, or room was made. If not, socketserver closes the connection."""
        host = client_address[0]
        is_own = _is_own(request, host)
        with self._lock:
            beside = [connection for connection, each in self._open.items() if each.is_own == is_own]
            if len(beside) < CONNECTIONS_MAX:
                return True
            silent = [connection for connection in beside if not self._open[connection].has_request]
            candidates = silent or beside
            ((most, count),) = Counter(self._open[each].host for each in candidates).most_common(1)
            if not silent and (count == 1 or most == host):
                logger.debug("metrics port: refusing a connection of %s, open=%d", host, CONNECTIONS_MAX)
                return False
            oldest = next(each for each in candidates if self._open[each].host == most)
            logger.debug("metrics port: cutting off a connection of %s for one of %s", most, host)
            del self._open[oldest]
            _shut_down(oldest)
        return True

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start the connection's deadline and serve it in a thread."""
        with self._lock:
            host = client_address[0]
            self._open[request] = _Open(host, _is_own(request, host), time.monotonic() + REQUEST_SECONDS_MAX)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget a served connection, and close it."""
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log a failed connection at debug level, without a traceback: the cause is the client."""
        logger.debug("metrics port: connection of %s ended: %s", client_address[0], sys.exc_info()[1])


def _is_own(connection: socket.socket, host: str) -> bool:
    """Return whether a connection comes from the address that it goes to."""
    try:
        return bool(connection.getsockname()[0] == host)
    except OSError:  # the client has reset it
        return False


def _shut_down(connection: socket.socket) -> None:
    try:
        # The plain socket's method: that of a TLS socket would let its thread go on without encryption.
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
    except OSError:
        # Already closed by its own thread or by the client.
        return
