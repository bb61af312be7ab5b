"""Clients that block a thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable


async def run_in_thread(work: Callable[[], None]) -> None:
    """Run in a thread that nothing waits for after a cancellation.

    Without a broker some calls of librdkafka never return, and the loop waits at its end for the threads of its pool.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def end(error: BaseException | None) -> None:
        if ended.done():
            return
        if error is None:
            ended.set_result(None)
        else:
            ended.set_exception(error)

    def run() -> None:
        error: BaseException | None = None
        try:
            work()
        except BaseException as raised:  # noqa: BLE001 - the loop raises it
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(end, error)

    threading.Thread(target=run, daemon=True).start()
    await ended
