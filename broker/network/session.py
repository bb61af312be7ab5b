"""State of one client connection beyond its current request: addresses, client id, fetch positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.printable import printable
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    import asyncio

    from barnabas.config.listeners import Listener
    from barnabas.protocol.dialects import RequestCache


class Session:
    """One connection. `listener` decides which address Metadata answers."""

    __slots__ = (
        "caches_requests",
        "client_id",
        "fetched_to",
        "listener",
        "local_host",
        "local_port",
        "peer",
        "request_cache",
    )

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.peer = "?"
        self.local_host = ""
        self.local_port = 0
        self.client_id: str | None = None
        self.request_cache: RequestCache | None = None
        """Shapes of the connection's produce requests; None before the first one."""
        self.caches_requests = True
        """False once its requests have turned out not to repeat: nothing is cached any more."""
        self.fetched_to: dict[TopicPartition, tuple[int, int]] = {}
        """By partition: offset of the last fetch that returned records, and the log end offset at that time."""

    def connected(self, transport: asyncio.BaseTransport) -> None:
        """Keep both addresses: the peer's for log lines, ours as the address by which the client reaches the broker."""
        address = transport.get_extra_info("peername")
        if address:
            self.peer = f"{address[0]}:{address[1]}"
        address = transport.get_extra_info("sockname")
        if address:
            # A dual-stack socket reports an IPv4 address as ::ffff:127.0.0.1, which not every client can parse.
            self.local_host, self.local_port = address[0].removeprefix("::ffff:"), address[1]

    def __str__(self) -> str:
        return self.peer if self.client_id is None else f"{self.peer} (client_id={printable(self.client_id)})"
