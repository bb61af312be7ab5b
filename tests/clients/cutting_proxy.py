"""A proxy before a real broker that loses answers: the request was carried out, but its sender gets no response.

    async with CuttingProxy(chance, cut_rate=0.2) as proxy:
        daemon = start_daemon(tmp_path, f"advertised.listeners={proxy.address}")
        proxy.upstream = (daemon.host, daemon.port)

Of each answer to a produce request, or to another API of `apis`, it decides by a seeded draw whether to pass it on or
to reset the client's connection instead. Everything else passes as it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Collection

from barnabas.protocol.framing import SIZE_PREFIX
from barnabas.protocol.messages.api_key import ApiKey


class CuttingProxy:
    """Use it as an async context manager. `cuts` counts the answers that were lost."""

    def __init__(
        self, chance: random.Random, cut_rate: float, apis: Collection[ApiKey] = frozenset({ApiKey.PRODUCE})
    ) -> None:
        self.apis = apis
        self.upstream: tuple[str, int] | None = None
        self.cut_rate = cut_rate
        self.cuts = 0
        self.address = ""
        self._chance = chance
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> CuttingProxy:
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

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        upstream: asyncio.StreamWriter | None = None
        asked: dict[bytes, int] = {}
        try:
            assert self.upstream is not None
            answers, upstream = await asyncio.open_connection(*self.upstream)
            directions = [
                asyncio.ensure_future(_pass_requests(reader, upstream, asked)),
                asyncio.ensure_future(self._pass_answers(answers, writer, asked)),
            ]
            try:
                await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for direction in directions:
                    direction.cancel()
                await asyncio.gather(*directions, return_exceptions=True)
        except (OSError, asyncio.CancelledError):
            pass  # no broker there, or the test is over: the client's connection is reset below
        finally:
            self._tasks.discard(task)
            writer.transport.abort()
            if upstream is not None:
                upstream.transport.abort()

    async def _pass_answers(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: dict[bytes, int]
    ) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                prefix = await reader.readexactly(SIZE_PREFIX)
                frame = await reader.readexactly(int.from_bytes(prefix, "big"))
                if asked.pop(frame[:4], None) in self.apis and self._chance.random() < self.cut_rate:
                    self.cuts += 1
                    return
                writer.write(prefix + frame)
                await writer.drain()


async def _pass_requests(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: dict[bytes, int]) -> None:
    """Pass requests on, and note the API of each by its correlation id."""
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        while True:
            prefix = await reader.readexactly(SIZE_PREFIX)
            frame = await reader.readexactly(int.from_bytes(prefix, "big"))
            asked[frame[4:8]] = int.from_bytes(frame[:2], "big")
            writer.write(prefix + frame)
            await writer.drain()
