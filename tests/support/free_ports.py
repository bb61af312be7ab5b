"""Ports for programs that must be told theirs, or need the same one after a restart."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path

_FIRST = 10_000
_chance = random.SystemRandom()


def _end() -> int:
    """Return the first port that the system gives to clients, and to those who ask for port 0."""
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        return 32_768


def free_ports(count: int) -> list[int]:
    """Return different ports of 127.0.0.1 that were free a moment ago.

    They are below those that the system gives away, so no connection of another test takes one before its program does.
    """
    found: list[int] = []
    for port in _chance.sample(range(_FIRST, max(_end(), _FIRST + 10_000)), 1000):
        if len(found) == count:
            break
        with socket.socket() as probe, contextlib.suppress(OSError):  # another program has it: the next one
            probe.bind(("127.0.0.1", port))
            found.append(port)
    assert len(found) == count, f"fewer than {count} free ports"
    return found


def free_port() -> int:
    """Return one port, see `free_ports`."""
    return free_ports(1)[0]
