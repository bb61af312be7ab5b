"""Broker addresses: `host:port`, and bootstrap lists of them."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.clients.errors import ClientConfigError

MAX_PORT = 65535


class Address(NamedTuple):
    """A host's name or IP address, and a TCP port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Parse `host:port` or `[ipv6]:port`. Raises ClientConfigError with the reason."""
    host, separator, port_text = text.strip().rpartition(":")
    if not separator or not host:
        raise ClientConfigError(f"bootstrap: {text.strip()!r} is not host:port")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ClientConfigError(f"bootstrap: write the IPv6 address of {text.strip()!r} in brackets, [::1]:9092")
    if not (port_text.isascii() and port_text.isdigit() and 0 < int(port_text) <= MAX_PORT):
        raise ClientConfigError(f"bootstrap: the port of {text.strip()!r} is not a number between 1 and {MAX_PORT}")
    return Address(host, int(port_text))


def parse_bootstrap(text: str) -> tuple[Address, ...]:
    """Parse a comma-separated list and remove duplicates. Raises ClientConfigError for an empty list or a bad part."""
    addresses = tuple(dict.fromkeys(parse_address(part) for part in text.split(",") if part.strip()))
    if not addresses:
        raise ClientConfigError("bootstrap is empty: name at least one broker as host:port")
    return addresses
