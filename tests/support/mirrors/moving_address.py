"""One address for two brokers, as a virtual IP address or a load balancer has it: clients reach the current target."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class MovingAddress:
    """Forwards connections to `target`, a port of this machine. Event loop only."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.port = 0
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def move(self, target: int) -> None:
        """Forward to another port from now on; connections to the former one are cut."""
        self.target = target
        self.cut()

    def cut(self) -> None:
        for writer in self._writers:
            writer.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            there_reader, there = await asyncio.open_connection("127.0.0.1", self.target)
            self._writers.add(there)
            await asyncio.gather(_pump(reader, there), _pump(there_reader, writer))
            self._writers.discard(there)
        except OSError:
            writer.close()
        finally:
            self._writers.discard(writer)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def moving_address(target: int) -> AsyncIterator[MovingAddress]:
    """Listen on a free port while the block runs."""
    address = MovingAddress(target)
    server = await asyncio.start_server(address.serve, "127.0.0.1", 0)
    address.port = server.sockets[0].getsockname()[1]
    try:
        yield address
    finally:
        server.close()
        address.cut()
