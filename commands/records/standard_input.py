"""Standard input in an event loop, read in chunks and split into lines.

A pipe or terminal is awaited with the loop's `add_reader`, which leaves its mode alone (`connect_read_pipe` would make
the user's terminal non-blocking for the shell too). A regular file cannot be awaited and never blocks for long.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

from barnabas.commands.failures import CommandFailure

CHUNK_BYTES = 256 * 1024

MAX_LINE_BYTES = 64 * 1024 * 1024
"""A longer line ends the command. The broker accepts far less (message.max.bytes); this bounds memory."""


async def read_chunks(descriptor: int) -> AsyncIterator[bytes]:
    """Read the file to its end, at most CHUNK_BYTES at a time."""
    while True:
        if not await _readable(descriptor):
            await asyncio.sleep(0)  # a regular file: let the loop work between two chunks
        chunk = os.read(descriptor, CHUNK_BYTES)
        if not chunk:
            return
        yield chunk


async def _readable(descriptor: int) -> bool:
    """Wait for input or its end. Returns False immediately for a file that cannot be awaited.

    The descriptor is watched only during the wait: the loop would spin on unread input otherwise.
    """
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    try:
        loop.add_reader(descriptor, lambda: None if ready.done() else ready.set_result(None))
    except PermissionError:  # epoll refuses regular files and /dev/null
        return False
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)
    return True


async def read_lines(descriptor: int) -> AsyncIterator[list[bytes]]:
    """Yield the lines that each chunk completes, without newlines; bytes after the last newline are a line too.

    Raises CommandFailure when a line is longer than MAX_LINE_BYTES.
    """
    parts: list[bytes] = []
    held_bytes = 0
    async for chunk in read_chunks(descriptor):
        first, newline, rest = chunk.partition(b"\n")
        held_bytes += len(first)
        if held_bytes > MAX_LINE_BYTES:
            raise CommandFailure(f"a line of the input is longer than {MAX_LINE_BYTES} bytes")
        parts.append(first)
        if not newline:
            continue
        lines = rest.split(b"\n")
        tail = lines.pop()
        lines.insert(0, b"".join(parts))
        parts = [tail] if tail else []
        held_bytes = len(tail)
        yield lines
    if held_bytes:
        yield [b"".join(parts)]
