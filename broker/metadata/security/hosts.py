"""Host names in quotas of addresses."""

from __future__ import annotations

import socket


def is_resolvable(host: str) -> bool:
    """Return whether a text is an address or a name that the resolver knows. May block for seconds."""
    try:
        socket.getaddrinfo(host, None)
    except (OSError, UnicodeError):
        return False
    return True
