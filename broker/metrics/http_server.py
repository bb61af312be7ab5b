"""HTTP server of the metrics port: wsgiref for the protocol, prometheus_client for the text, limits on connections.

Imported only when the first connection arrives (see `server`). HTTP/1.0, one request per connection, one thread per
connection. Connections above `CONNECTIONS_MAX` are closed immediately. A connection without a complete response after
`CONNECTION_SECONDS_MAX` is closed, so slow clients cannot occupy threads. The threads and the event loop never wait
for each other.
"""

from __future__ import annotations

import errno
import logging
import socket
import sys
import threading
import time
from socketserver import ThreadingMixIn
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from barnabas.broker.metrics.application import make_application
from barnabas.broker.metrics.server import NewContext
from barnabas.broker.metrics.state import BrokerState
from barnabas.broker.probes import BrokerProbes

CONNECTIONS_MAX: Final = 8
CONNECTION_SECONDS_MAX: Final = 30.0

_OUT_OF_DESCRIPTORS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

logger = logging.getLogger(__name__)


class _QuietHandler(WSGIRequestHandler):
    """Handler of one request, which logs broken requests at debug level and nothing else."""

    timeout = CONNECTION_SECONDS_MAX

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
        self._deadlines: dict[socket.socket, float] = {}
        self._lock = threading.Lock()
        self._accept_failed = False

    @property
    def open_connections(self) -> int:
        """Number of connections being served."""
        return len(self._deadlines)

    def accept(self) -> bool:
        """Serve one connection in a thread. Returns False if the process is out of file descriptors."""
        self._accept_failed = False
        self.handle_request()
        return not self._accept_failed

    def close_overdue(self) -> None:
        """Shut down connections past their deadline; their threads then fail and close them."""
        now = time.monotonic()
        with self._lock:
            overdue = [connection for connection, deadline in self._deadlines.items() if deadline < now]
            for connection in overdue:
                _shut_down(connection)

    def server_close(self) -> None:
        """Close the listener and shut down every connection."""
        with self._lock:
            for connection in self._deadlines:
                _shut_down(connection)
        super().server_close()

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
        """Return whether the connection is within the limit. If not, socketserver closes it."""
        if len(self._deadlines) < CONNECTIONS_MAX:
            return True
        logger.debug("metrics port: closing a connection of %s, open=%d", client_address[0], CONNECTIONS_MAX)
        return False

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start the connection's deadline and serve it in a thread."""
        with self._lock:
            self._deadlines[request] = time.monotonic() + CONNECTION_SECONDS_MAX
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Remove the deadline of a served connection, and close it."""
        with self._lock:
            self._deadlines.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log a failed connection at debug level, without a traceback: the cause is the client."""
        logger.debug("metrics port: connection of %s ended: %s", client_address[0], sys.exc_info()[1])


def _shut_down(connection: socket.socket) -> None:
    try:
        # The plain socket's method: that of a TLS socket would let its thread go on without encryption.
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
    except OSError:
        # Already closed by its own thread or by the client.
        return
