"""Messages to the service manager that started this process (systemd's `Type=notify`).

The manager names a datagram socket in NOTIFY_SOCKET: a path, or an abstract name after `@`. Each message is lines of
NAME=value. A process without that variable sends nothing. Source: sd_notify(3).
"""

from __future__ import annotations

import logging
import os
import threading
from typing import Final

logger = logging.getLogger(__name__)

VARIABLE = "NOTIFY_SOCKET"
READY = "READY=1"
STOPPING = "STOPPING=1"

_PATIENCE_SECONDS: Final = 60.0
"""For a manager that does not read: less than systemd's usual limit for a start, 90 s."""


def notify(state: str, status: str) -> None:
    """Send `state`, and `status` as the line that `systemctl status` shows. A failure is logged: the broker goes on."""
    address = os.environ.get(VARIABLE)
    if not address:
        return
    message = f"{state}\nSTATUS={status}\n".encode()
    try:
        _send(address, message, 0)
    except BlockingIOError:
        # Many messages wait for the manager. The event loop does not.
        arguments = (address, state, message)
        threading.Thread(target=_send_later, args=arguments, name="service-manager", daemon=True).start()
    except OSError as error:
        _note_failure(address, state, error)


def _send(address: str, message: bytes, patience_seconds: float) -> None:
    """Send one datagram; wait that long for room in the manager's queue. Raises OSError."""
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager:
        manager.settimeout(patience_seconds)
        # A socket that is not connected would seem to have room all the time.
        manager.connect("\0" + address[1:] if address.startswith("@") else address)
        manager.send(message)


def _send_later(address: str, state: str, message: bytes) -> None:
    try:
        _send(address, message, _PATIENCE_SECONDS)
    except OSError as error:
        _note_failure(address, state, error)


def _note_failure(address: str, state: str, error: OSError) -> None:
    logger.warning("cannot tell the service manager %s: socket=%s error=%s", state, address, error)
