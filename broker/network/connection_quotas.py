"""Limits on open connections, checked when a connection is accepted and before anything is allocated for it.

    max.connections                      of the broker, and of one listener with its prefix
    max.connections.per.ip               of one address
    max.connections.per.ip.overrides     of the addresses that it lists

All may change at run time. A further limit is the process's limit on open files: a connection takes up to two
descriptors (its socket, and the duplicate that sendfile writes to). Clients get half of them, so that logs can always
be opened: a log that cannot open a file takes its directory offline, and possibly the broker with it.

Different from Kafka: at max.connections Kafka stops accepting until a connection ends; here the connection is closed.
"""

from __future__ import annotations

import logging
import resource
import socket
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.network.session import java_host_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.broker.live_config import LiveConfig

logger = logging.getLogger(__name__)

_CLIENTS_SHARE_OF_DESCRIPTORS: Final = 2
_DESCRIPTORS_PER_CONNECTION: Final = 2

UNAUTHENTICATED_SHARE: Final = 5
"""A fifth of the connections that the limit on open files allows may be in a TLS handshake, another fifth in SASL's."""


class Refusal(NamedTuple):
    """Why a connection is refused: `reason` is a label of the metric, `text` ends the log line."""

    reason: str
    text: str


class ConnectionQuotas:
    """Counts of open connections, from their acceptance to their end."""

    def __init__(self, config: LiveConfig) -> None:
        """Reads the limit on open files, so create it after the log manager has raised that."""
        self._config = config
        self._open_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._open = 0
        self._by_listener: Counter[str] = Counter()
        self._by_host: Counter[str] = Counter()
        self._overrides_text = ""
        self._overrides_by_host: Mapping[str, int] = {}
        self._overrides()

    def refusal(self, listener: str, host: str) -> Refusal | None:
        """Return why another connection from `host` to `listener` is refused, or None."""
        config = self._config.broker
        configured = config.get_int("max.connections")
        if self._open >= configured:
            return Refusal("max_connections", f"max.connections={configured} are open")
        limit = self._descriptor_limit
        if limit is not None and self._open >= limit:
            return Refusal(
                "max_connections",
                f"{self._open} are open, as many as the limit of {self._open_files} open files allows",
            )
        properties = self._config.listener_properties(listener)
        of_listener = properties.get_int("max.connections")
        if self._by_listener[listener] >= of_listener:
            return Refusal("max_connections", f"max.connections={of_listener} of the listener {listener} are open")
        per_ip = self._overrides().get(host, config.get_int("max.connections.per.ip"))
        if self._by_host[host] >= per_ip:
            return Refusal(
                "max_connections_per_ip", f"{self._by_host[host]} are open from {host} (max.connections.per.ip)"
            )
        return None

    @property
    def unauthenticated_max(self) -> int | None:
        """How many connections may be in a TLS handshake, and in a SASL authentication; None: any number."""
        limit = self._descriptor_limit
        return None if limit is None else max(limit // UNAUTHENTICATED_SHARE, 1)

    def opened(self, listener: str, host: str) -> None:
        """Count an accepted connection."""
        self._open += 1
        self._by_listener[listener] += 1
        self._by_host[host] += 1

    def closed(self, listener: str, host: str) -> None:
        """Stop counting a connection that has ended."""
        self._open -= 1
        self._by_listener[listener] -= 1
        self._by_host[host] -= 1
        if not self._by_host[host]:
            del self._by_host[host]  # addresses of clients must not pile up

    def _overrides(self) -> Mapping[str, int]:
        text = self._config.broker.get_str("max.connections.per.ip.overrides") or ""
        if text != self._overrides_text:
            self._overrides_text = text
            self._overrides_by_host = _parse_overrides(text)
        return self._overrides_by_host

    @property
    def _descriptor_limit(self) -> int | None:
        if self._open_files == resource.RLIM_INFINITY:
            return None
        return self._open_files // (_CLIENTS_SHARE_OF_DESCRIPTORS * _DESCRIPTORS_PER_CONNECTION)


def _parse_overrides(text: str) -> dict[str, int]:
    """Parse `host:number,...` into the number by address.

    Blocks while a name server is queried, which happens at the start and when the property changes. A host that has no
    address is ignored with a warning, so that a name server that is down cannot stop the broker.
    """
    limits: dict[str, int] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        host, _, number = entry.rpartition(":")
        try:
            limit = int(number)
            found = socket.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM)
        except (ValueError, OSError) as error:
            logger.warning("ignoring %s of max.connections.per.ip.overrides: %s", entry, error)
            continue
        for _, _, _, _, address in found:
            limits[java_host_address(str(address[0]))] = limit
    return limits
