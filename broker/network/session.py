"""What is known of a client beyond its requests: where it came in, who it says it is, how far it has fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.printable import printable
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    import asyncio

    from barnabas.config.listeners import Listener
    from barnabas.protocol.kafka.data.repeated_produce import RepeatedProduce


class Session:
    """One connection's facts. `listener` decides which address Metadata answers."""

    __slots__ = (
        "client_id",
        "fetched_to",
        "listener",
        "local_host",
        "local_port",
        "may_repeat",
        "peer",
        "repeated_produce",
    )

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.peer = "?"
        self.local_host = ""
        self.local_port = 0
        self.client_id: str | None = None
        self.repeated_produce: RepeatedProduce | None = None
        """What is known of the connection's produce requests; None before the first one."""
        self.may_repeat = True
        """False once its produce requests have been too different from each other to know them again."""
        self.fetched_to: dict[TopicPartition, tuple[int, int]] = {}
        """By partition: the offset of the last fetch that got bytes, and the end of the log at that moment."""

    def connected(self, transport: asyncio.BaseTransport) -> None:
        """Remember both addresses: the peer's for log lines, ours as the one at which this client reached us."""
        address = transport.get_extra_info("peername")
        if address:
            self.peer = f"{address[0]}:{address[1]}"
        address = transport.get_extra_info("sockname")
        if address:
            # A socket for both families calls an IPv4 address ::ffff:127.0.0.1, which not every client can read.
            self.local_host, self.local_port = address[0].removeprefix("::ffff:"), address[1]

    def __str__(self) -> str:
        return self.peer if self.client_id is None else f"{self.peer} (client_id={printable(self.client_id)})"
