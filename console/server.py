"""Runs the console until it is told to stop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Collection
from pathlib import Path

import uvicorn

from barnabas.clients.addresses import Address
from barnabas.console.app import build_app
from barnabas.console.connections import LimitedProtocol
from barnabas.console.settings import ConsoleSettings


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
        self._server = uvicorn.Server(
            uvicorn.Config(
                build_app(settings, host_names, lambda settings: started(self.address, settings)),
                http=LimitedProtocol,
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=1,  # live pages never end by themselves
                ssl_certfile=certificate,
                ssl_keyfile=key,
            )
        )

    async def serve(self) -> None:
        """Serve until SIGINT or SIGTERM."""
        await self._server.serve([self._socket])


def run(server: ConsoleServer) -> None:
    """Serve in an event loop of its own."""
    asyncio.run(server.serve())
