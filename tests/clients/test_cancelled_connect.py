"""A connect that is cancelled just when the connection is made ends at once."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest
import uvloop

from barnabas.clients.addresses import Address
from barnabas.clients.network.connection import Connection, ConnectionSettings


class CancelledConnection(Connection):
    """Cancels the task that opens it, between connection_made() and the end of create_connection()."""

    opening: asyncio.Task[Connection]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport and cancel the task."""
        super().connection_made(transport)
        self.opening.cancel()


@pytest.mark.parametrize("new_loop", [uvloop.new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
def test_a_connect_that_is_cancelled_when_the_connection_is_made_ends(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def connect(port: int) -> None:
        settings = ConnectionSettings("cancelled", "1", 5000, 5000, 1 << 20)
        opening = asyncio.create_task(CancelledConnection.open(Address("127.0.0.1", port), settings))
        CancelledConnection.opening = opening
        done, _ = await asyncio.wait([opening], timeout=30)
        assert done, "the cancelled task goes on"
        assert opening.cancelled()

    with socket.create_server(("127.0.0.1", 0)) as server, asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(connect(server.getsockname()[1]))
