"""Runs the console until it is told to stop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, cast

import uvicorn

from barnabas.clients.addresses import Address
from barnabas.console.app import build_app
from barnabas.console.connections import CLIENT_SECONDS_MAX, LimitedProtocol
from barnabas.console.settings import ConsoleSettings
from barnabas.transport.handshakes import HandshakeThreads
from barnabas.transport.tls_transport import TlsParts, TlsTransport, new_scratch


class ConsoleServer:
    """One console on one address; port 0 takes a free one. Raises OSError if the address is not free."""

    def __init__(
        self,
        settings: ConsoleSettings,
        host_names: Collection[str] = (),
        certificate: Path | None = None,
        key: Path | None = None,
        started: Callable[[Address, ConsoleSettings], None] = lambda *_: None,
    ) -> None:
        """`started` is called when pages are served, as `ready` of the application is, and with the address."""
        family = socket.AF_INET6 if ":" in settings.address.host else socket.AF_INET
        self._socket = socket.create_server(settings.address, family=family)
        port: int = self._socket.getsockname()[1]
        self.address = Address(settings.address.host, port)
        self._tls = None if certificate is None else _TlsProtocols()
        config = uvicorn.Config(
            build_app(settings, host_names, lambda settings: started(self.address, settings)),
            http=self._tls or LimitedProtocol,  # type: ignore[arg-type]
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,  # live pages never end by themselves
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
        if self._tls is not None:
            self._tls.take_context(config)
        self._server = uvicorn.Server(config)

    async def serve(self) -> None:
        """Serve until SIGINT or SIGTERM."""
        try:
            await self._server.serve([self._socket])
        finally:
            if self._tls is not None:
                self._tls.close()


class _TlsProtocols:
    """Makes the protocols of connections: the broker's TLS, which bounds what strangers may send, below the console's.

    The standard library's works off any number of key updates in one turn of the event loop.
    """

    def __init__(self) -> None:
        self._handshakes: HandshakeThreads | None = None
        self._parts: TlsParts

    def take_context(self, config: uvicorn.Config) -> None:
        """Take the context out of `config`, whose connections get their protocols here."""
        config.load()
        context, config.ssl = config.ssl, None
        assert context is not None, "a certificate was given"
        self._context = context

    def __call__(self, **named: Any) -> TlsTransport:
        loop = asyncio.get_running_loop()
        if self._handshakes is None:
            self._handshakes = HandshakeThreads(loop)
            self._parts = TlsParts(
                context=lambda: self._context,
                handshakes=self._handshakes,
                scratch=new_scratch(),
                handshake_seconds=CLIENT_SECONDS_MAX,
                on_broken=lambda *_: None,
            )
        protocol = cast("asyncio.BufferedProtocol", LimitedProtocol(**named))
        return TlsTransport(loop, protocol, self._parts, on_failed=lambda error: None)

    def close(self) -> None:
        """End the threads of handshakes."""
        if self._handshakes is not None:
            self._handshakes.close()


def run(server: ConsoleServer) -> None:
    """Serve in an event loop of its own."""
    asyncio.run(server.serve())
