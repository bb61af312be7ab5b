"""The control socket of a standby: `standby.sock` in its metadata log directory, for the user of the process only.

One JSON object a line in each direction: {"command": "status"} or {"command": "promote", "planned": false}. The answer
is an object, with `error` if the command failed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

logger = logging.getLogger(__name__)

SOCKET_NAME: Final = "standby.sock"
_LINE_BYTES: Final = 64 * 1024

Answer = dict[str, Any]


class ControlServer:
    """Serves one socket."""

    def __init__(self, directory: Path, answer: Callable[[Any], Awaitable[Answer]]) -> None:
        self._directory = directory
        self._answer = answer
        self._server: asyncio.AbstractServer | None = None

    async def start(self) -> None:
        """Create the socket. Raises OSError."""
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with short_path(self._directory) as path:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)  # of a process that was killed
            mask = os.umask(0o177)
            try:
                listening.bind(path)
            finally:
                os.umask(mask)
        listening.listen()
        listening.setblocking(False)
        self._server = await asyncio.start_unix_server(self._serve, sock=listening, limit=_LINE_BYTES)

    async def close(self) -> None:
        """Close the socket and remove its file."""
        if self._server is not None:
            self._server.close()
            (self._directory / SOCKET_NAME).unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                answer = await self._answered(line)
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        except (OSError, ValueError) as error:  # the command was interrupted, or sent a line without an end
            logger.debug("the control socket lost a client: %s", error)
        finally:
            writer.close()

    async def _answered(self, line: bytes) -> Answer:
        try:
            return await self._answer(json.loads(line))
        except ValueError as error:
            return {"error": f"not a command: {error}"}


@contextlib.contextmanager
def short_path(directory: Path) -> Iterator[str]:
    """Give the path of the socket in a form that fits into the 107 bytes of a socket's address. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET_NAME}"
    finally:
        os.close(descriptor)
