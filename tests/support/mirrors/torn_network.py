"""A proxy before a broker that resets connections in the middle of an answer, for clients of any protocol.

async with TornNetwork(chance) as network:
    daemon = start_daemon(tmp_path, f"advertised.listeners={network.address}")
    network.upstream = (daemon.host, daemon.port)
    network.cut_rate = 0.1
"""

from __future__ import annotations

import asyncio
import contextlib
import random

_READ_BYTES = 1 << 16


class TornNetwork:
    """Use it as an async context manager. `cuts` counts the connections that were reset."""

    def __init__(self, chance: random.Random) -> None:
        self.upstream: tuple[str, int] | None = None
        self.cut_rate = 0.0
        """Share of the received parts of answers of which only a beginning is passed on."""
        self.cuts = 0
        self.address = ""
        self._is_down = False
        self._chance = chance
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> TornNetwork:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *details: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def take_down(self) -> None:
        """Reset all connections, and each new one, until `bring_up`."""
        self._is_down = True
        for task in list(self._tasks):
            task.cancel()

    def bring_up(self) -> None:
        """Pass connections on again."""
        self._is_down = False

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_down:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        upstream: asyncio.StreamWriter | None = None
        directions: list[asyncio.Task[None]] = []
        try:
            assert self.upstream is not None
            answers, upstream = await asyncio.open_connection(*self.upstream)
            directions = [
                asyncio.create_task(_pass_bytes(reader, upstream)),
                asyncio.create_task(self._pass_answers(answers, writer)),
            ]
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        except (OSError, asyncio.CancelledError):
            pass  # no broker there, or the test is over: the client's connection is reset below
        finally:
            for direction in directions:
                direction.cancel()
            await asyncio.gather(*directions, return_exceptions=True)
            self._tasks.discard(task)
            writer.transport.abort()
            if upstream is not None:
                upstream.transport.abort()

    async def _pass_answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_READ_BYTES):
                is_cut = self._chance.random() < self.cut_rate
                writer.write(data[: self._chance.randrange(len(data))] if is_cut else data)
                await writer.drain()
                if is_cut:
                    self.cuts += 1
                    return


async def _pass_bytes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(_READ_BYTES):
            writer.write(data)
            await writer.drain()
