"""Threads that compute handshakes: half a millisecond each (P-256), several with large RSA keys.

OpenSSL releases the interpreter's lock meanwhile, so the event loop goes on. Each connection has at most one step
queued, and is not read until it is done: the queue is bounded by the number of connections, and served in order.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    import asyncio

HANDSHAKE_THREADS: Final = 2


class HandshakeRunner(Protocol):
    """Runs one step of a handshake somewhere, and `done` in the event loop's thread afterwards."""

    def run(self, step: Callable[[], bool], done: Callable[[bool | Exception], None]) -> None:
        """`done` gets what `step` returned or raised."""
        ...


class HandshakeThreads:
    """Runs steps in threads of its own, so that handshakes wait for each other and nothing else waits for them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, threads: int = HANDSHAKE_THREADS) -> None:
        self._loop = loop
        self._executor = ThreadPoolExecutor(threads, "tls-handshake")

    def run(self, step: Callable[[], bool], done: Callable[[bool | Exception], None]) -> None:
        """Queue `step`. After `close` it is not run, and `done` is not called."""
        try:
            self._executor.submit(self._run, step, done)
        except RuntimeError:  # closed: the broker stops, and its connections are aborted
            return

    def close(self) -> None:
        """Drop queued steps and wait for the current ones."""
        self._executor.shutdown(cancel_futures=True)

    def _run(self, step: Callable[[], bool], done: Callable[[bool | Exception], None]) -> None:
        outcome = _outcome(step)
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(done, outcome)


def _outcome(step: Callable[[], bool]) -> bool | Exception:
    try:
        return step()
    except Exception as error:  # noqa: BLE001 - handed to the connection, which logs and closes
        return error.with_traceback(None)  # the connection keeps it, and the frames have the connection
