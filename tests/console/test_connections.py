"""What a connection to the console may hold while it waits for its client: time, and one of few places."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from uvicorn.server import ServerState

from barnabas.clients.config import ClientConfig
from barnabas.console import connections
from barnabas.console.app import build_app
from barnabas.console.connections import LimitedProtocol
from barnabas.console.settings import ConsoleSettings

Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
FORM = b"POST /form HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\nhalf"
TIMEOUT_S = 20
LARGE_BYTES = 32 << 20
"""More than the buffers between the console and a client take."""


async def _form(request: Request) -> Response:
    await request.body()
    return PlainTextResponse("complete")


async def _large(request: Request) -> Response:
    size = LARGE_BYTES // int(request.query_params["parts"])
    return StreamingResponse(bytes(size) for _ in range(0, LARGE_BYTES, size))


def play(scenario: Callable[[Connect], Awaitable[None]]) -> None:
    """Run a scenario with a server of the console's application and one page more."""

    async def run() -> None:
        loop, writers = asyncio.get_running_loop(), []
        settings = ConsoleSettings(client=ClientConfig())
        app = build_app(settings)
        app.routes.append(Route("/form", _form, methods=["GET", "POST"]))
        app.routes.append(Route("/large", _large))
        config, state = uvicorn.Config(app, lifespan="off", log_config=None), ServerState()
        server = await loop.create_server(lambda: LimitedProtocol(config, state, {}), "127.0.0.1", 0)

        async def connect() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writers.append(writer)
            return reader, writer

        async with asyncio.timeout(TIMEOUT_S):
            await scenario(connect)
            for writer in writers:
                writer.close()
            while state.connections or state.tasks:
                await asyncio.sleep(0)
        server.close()

    asyncio.run(run())


async def ended(reader: asyncio.StreamReader) -> None:
    try:
        assert await reader.read(1) == b""
    except ConnectionResetError:
        pass


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rest: bytes) -> bytes:
    writer.write(rest)
    return await reader.readline()


@pytest.mark.parametrize("beginning", [b"", b"GET /form HTTP/1.1\r\nX: 1", FORM])
def test_the_oldest_connection_without_a_complete_request_gives_way(
    monkeypatch: pytest.MonkeyPatch, beginning: bytes
) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS_MAX", 3)

    async def scenario(connect: Connect) -> None:
        held = []
        for _ in range(6):
            reader, writer = await connect()
            writer.write(beginning)
            held.append((reader, writer))
        for reader, _ in held[:3]:
            await ended(reader)
        rest = {b"": b"GET /form HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", FORM: bytes(96)}
        found = await answer(*held[-1], rest.get(beginning, b"\r\nHost: 127.0.0.1\r\n\r\n"))
        assert found.startswith(b"HTTP/1.1 200"), found

    play(scenario)


@pytest.mark.parametrize("beginning", [b"", b"GET /form HTTP/1.1\r\nX: 1", FORM])
def test_a_request_has_a_limited_time(monkeypatch: pytest.MonkeyPatch, beginning: bytes) -> None:
    monkeypatch.setattr(connections, "CLIENT_SECONDS_MAX", 0.2)

    async def scenario(connect: Connect) -> None:
        reader, writer = await connect()
        writer.write(beginning)
        await ended(reader)

    play(scenario)


@pytest.mark.parametrize("parts", [1, 32])
def test_a_client_that_does_not_read_gives_way(monkeypatch: pytest.MonkeyPatch, parts: int) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS_MAX", 1)

    async def scenario(connect: Connect) -> None:
        _, writer = await connect()
        writer.write(b"GET /large?parts=%d HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n" % parts)
        found = b""
        while not found:  # refused until the console has filled the buffers
            with suppress(ConnectionError):
                found = await answer(*await connect(), b"GET /form HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert found.startswith(b"HTTP/1.1 200"), found

    play(scenario)


def test_a_form_that_makes_progress_has_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that has made none for longer gives way."""
    monkeypatch.setattr(connections, "CONNECTIONS_MAX", 2)
    monkeypatch.setattr(connections, "PROGRESS_BYTES", 50)

    async def scenario(connect: Connect) -> None:
        form = await connect()
        form[1].write(FORM)
        silent, _ = await connect()
        form[1].write(bytes(90))
        await answer(*await connect(), b"GET /form HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        await ended(silent)
        assert (await answer(*form, bytes(6))).startswith(b"HTTP/1.1 200")

    play(scenario)


@pytest.mark.parametrize("sent", [FORM, b"\x00\x01 not HTTP\r\n\r\n"])
def test_a_stranger_fills_no_log(caplog: pytest.LogCaptureFixture, sent: bytes) -> None:
    async def scenario(connect: Connect) -> None:
        for _ in range(5):
            _, writer = await connect()
            writer.write(sent)
            await writer.drain()
            writer.close()
        found = await answer(*await connect(), b"GET /form HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert found.startswith(b"HTTP/1.1 200"), found

    with caplog.at_level(logging.INFO):
        play(scenario)
    assert [each for each in caplog.records if each.name not in ("asyncio", "uvicorn.access")] == []
