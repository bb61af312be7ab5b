"""Serves the metrics port's HTTP: wsgiref for the protocol, prometheus_client for the text, bounds for both.

Imported only when the first connection arrives (see `server`). HTTP/1.0, one request per connection, a thread for
each of at most `CONNECTIONS_MAX`; one more is closed at once. A connection that is not answered within
`CONNECTION_SECONDS_MAX` is closed too, however slow the client. No thread here ever waits for the event loop, nor
the loop for them.
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
from barnabas.broker.metrics.state import BrokerState
from barnabas.broker.probes import BrokerProbes

CONNECTIONS_MAX: Final = 8
CONNECTION_SECONDS_MAX: Final = 30.0

_OUT_OF_DESCRIPTORS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

logger = logging.getLogger(__name__)


class _QuietHandler(WSGIRequestHandler):
    """One request. Logs only broken requests, at debug level."""

    timeout = CONNECTION_SECONDS_MAX

    def address_string(self) -> str:
        # Must never query a name server, as older versions of the inherited method did for each request.
        return str(self.client_address[0])

    def log_message(self, format: str, *args: Any) -> None:
        logger.debug("metrics port: %s", format % args)


class BoundedHttpServer(ThreadingMixIn, WSGIServer):
    """A WSGI server on a listening socket. The owner calls `accept` when the socket is readable."""

    daemon_threads = True
    block_on_close = False
    timeout = 0

    def __init__(self, listener: socket.socket, probes: BrokerProbes, state: BrokerState) -> None:
        address = listener.getsockname()
        super().__init__(address, _QuietHandler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        # What server_bind would set, without its look-up of the host's full name.
        self.server_name, self.server_port = str(address[0]), int(address[1])
        self.setup_environ()
        self.set_app(make_application(probes, state))
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
        """Cut the connections that are over their time; their threads then end with an error and close them."""
        now = time.monotonic()
        with self._lock:
            overdue = [connection for connection, deadline in self._deadlines.items() if deadline < now]
            for connection in overdue:
                _cut(connection)

    def server_close(self) -> None:
        """Close the listener and cut every connection."""
        with self._lock:
            for connection in self._deadlines:
                _cut(connection)
        super().server_close()

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; remember a failure for lack of file descriptors."""
        try:
            return self.socket.accept()
        except OSError as error:
            self._accept_failed = error.errno in _OUT_OF_DESCRIPTORS
            raise

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Return whether the connection is within the limit; otherwise socketserver closes it."""
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
        """Forget the deadline of a connection that its thread has served."""
        with self._lock:
            self._deadlines.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log a failed connection as one debug line: its cause is the client."""
        logger.debug("metrics port: connection of %s ended: %s", client_address[0], sys.exc_info()[1])


def _cut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        # Already closed by its own thread or by the client.
        return
