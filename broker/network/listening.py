"""Sockets of `listeners`: bound before anything on disk is touched, listening once the broker can serve."""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING

from barnabas.broker.startup_error import StartupError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.config import Listener


def bind(listeners: Sequence[Listener], send_buffer_bytes: int, receive_buffer_bytes: int) -> list[socket.socket]:
    """Bind a socket for each listener, without listening yet.

    Buffer sizes: socket.send.buffer.bytes and socket.receive.buffer.bytes, -1 keeps the system's default
    (accepted connections inherit them). Raises StartupError: port in use, unknown address, no permission.
    """
    sockets: list[socket.socket] = []
    try:
        for listener in listeners:
            opened = _bind(listener, send_buffer_bytes, receive_buffer_bytes)
            sockets.append(opened)
    except BaseException:
        for opened in sockets:
            opened.close()
        raise
    return sockets


def _bind(listener: Listener, send_buffer_bytes: int, receive_buffer_bytes: int) -> socket.socket:
    host = listener.host
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    dual_stack = host == "" and socket.has_dualstack_ipv6()
    if dual_stack:
        family, host = socket.AF_INET6, "::"
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Inherited by accepted connections: detects a client whose machine vanished during a long poll.
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if dual_stack:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        if send_buffer_bytes > 0:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
        if receive_buffer_bytes > 0:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        opened.setblocking(False)
        opened.bind((host, listener.port))
    except OSError as error:
        opened.close()
        raise StartupError(f"cannot listen on {listener}: {_reason(error)}") from error
    return opened


def _reason(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            "the port is in use by another program (another broker?): stop that one, or take another port with "
            "--set listeners=HOST:PORT"
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return "this machine does not have that address"
    return error.strerror or str(error)
