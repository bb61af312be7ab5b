"""A server that echoes over TlsTransport, on either event loop, with its own view of every connection."""

from __future__ import annotations

import asyncio
import select
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import cast

import trustme
import uvloop

from barnabas.transport.contexts import server_context
from barnabas.transport.handshakes import HandshakeThreads
from barnabas.transport.settings import MappingProperties, TlsSettings
from barnabas.transport.tls_transport import TlsParts, TlsTransport, new_scratch
from tests.support.tls import inline_properties

LOOPS = {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}
TIMEOUT_S = 20.0


class Echo(asyncio.BufferedProtocol):
    """Echoes with the broker's flow control: a full buffer pauses reading, a full socket stops writing."""

    def __init__(self, server: EchoServer) -> None:
        self.server = server
        self.buffer = memoryview(bytearray(server.buffer_bytes))
        self.filled = 0
        self.writable = True
        self.paused = False
        self.eof = False
        self.lost: list[Exception | None] = []
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(high=0)
        self.server.opened.append(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.buffer[self.filled :]

    def buffer_updated(self, nbytes: int) -> None:
        self.filled += nbytes
        self._echo()

    def _echo(self) -> None:
        if self.writable and not self.server.holding and not self.transport.is_closing():
            data, self.filled = bytes(self.buffer[: self.filled]), 0
            self.transport.write(data)
            if self.paused:
                self.paused = False
                self.transport.resume_reading()
        elif self.filled == len(self.buffer) and not self.paused:
            self.paused = True
            self.transport.pause_reading()

    def release(self) -> None:
        self._echo()

    def pause_writing(self) -> None:
        self.writable = False

    def resume_writing(self) -> None:
        self.writable = True
        self._echo()

    def eof_received(self) -> bool:
        self.eof = True
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.append(exc)


class EchoServer:
    """What the server saw."""

    def __init__(self, parts: TlsParts, port: int) -> None:
        self.parts = parts
        self.port = port
        self.buffer_bytes = 256 * 1024
        self.holding = False
        self.opened: list[Echo] = []
        self.transports: list[TlsTransport] = []
        self.failures: list[Exception] = []


@asynccontextmanager
async def echo_server(
    certificate: trustme.LeafCert,
    authority: trustme.CA | None = None,
    *,
    handshake_seconds: float = TIMEOUT_S,
    **properties: str,
) -> AsyncIterator[EchoServer]:
    """Serve on a free port of 127.0.0.1; every exception that reaches the loop fails the test."""
    loop = asyncio.get_running_loop()
    reached: list[dict[str, object]] = []
    loop.set_exception_handler(lambda _, context: reached.append(context))
    values = inline_properties(certificate, authority, **properties)
    context = server_context(TlsSettings.of_server(MappingProperties(values))).context
    threads = HandshakeThreads(loop)
    parts = TlsParts(
        context=lambda: context, handshakes=threads, scratch=new_scratch(), handshake_seconds=handshake_seconds
    )
    state = EchoServer(parts, 0)

    def connect() -> TlsTransport:
        transport = TlsTransport(loop, Echo(state), state.parts, state.failures.append)
        state.transports.append(transport)
        return transport

    server = await loop.create_server(connect, "127.0.0.1", 0)
    state.port = server.sockets[0].getsockname()[1]
    try:
        yield state
    finally:
        server.close()
        for transport in state.transports:
            if not transport.is_closing():
                transport.abort()
        await asyncio.sleep(0)
        threads.close()
    assert not reached, [(each, repr(each.get("exception"))) for each in reached]


def connected(port: int, context: ssl.SSLContext) -> ssl.SSLSocket:
    """Connect and finish the handshake, blocking."""
    raw = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
    try:
        return context.wrap_socket(raw, server_hostname="127.0.0.1")
    except BaseException:
        raw.close()
        raise


def read_exactly(client: ssl.SSLSocket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = client.recv(size - len(data))
        assert part, f"closed after {len(data)} of {size} bytes"
        data += part
    return bytes(data)


def exchange(client: ssl.SSLSocket, data: bytes) -> bytes:
    """Send `data` while reading as many bytes, in one thread: Python's TLS sockets are not safe for two."""
    client.setblocking(False)
    received = bytearray()
    sent = 0
    while len(received) < len(data):
        before = (sent, len(received))
        if sent < len(data):
            try:
                sent += client.send(data[sent : sent + 65536])
            except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
                pass
        try:
            part = client.recv(65536)
            assert part, f"closed after {len(received)} of {len(data)} bytes"
            received += part
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        if before == (sent, len(received)):
            poll = select.poll()  # select() refuses descriptors from 1024 on, which a long test run may have
            poll.register(client, select.POLLIN | (select.POLLOUT if sent < len(data) else 0))
            assert poll.poll(TIMEOUT_S * 1000), "nothing happens"
    client.settimeout(TIMEOUT_S)
    return bytes(received)


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait until `condition` holds."""
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():
            await asyncio.sleep(0.005)
