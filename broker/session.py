"""What is known of a client beyond its requests: where it came in, who it says it is, how far it has fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    import asyncio

    from barnabas.config.listeners import Listener


class Session:
    """One connection's facts. `listener` decides which address Metadata answers."""

    __slots__ = ("client_id", "fetched_to", "listener", "peer")

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.peer = "?"
        self.client_id: str | None = None
        self.fetched_to: dict[TopicPartition, tuple[int, int]] = {}
        """By partition: the offset of the last fetch that got bytes, and the end of the log at that moment."""

    def connected(self, transport: asyncio.BaseTransport) -> None:
        """Remember the peer's address for log lines."""
        address = transport.get_extra_info("peername")
        if address:
            self.peer = f"{address[0]}:{address[1]}"

    def __str__(self) -> str:
        return self.peer if self.client_id is None else f"{self.peer} (client_id={self.client_id})"
