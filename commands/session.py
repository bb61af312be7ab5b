"""A command's work on the client: an event loop, the client's configuration from the shared options, and its end."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypedDict, TypeVar

from barnabas.clients.admin.admin import Admin
from barnabas.clients.config import AdminConfig

CLIENT_ID = "barnabas-command"

_REQUEST_TIMEOUT_MS = 30_000
_CONNECT_TIMEOUT_MS = 10_000

T = TypeVar("T")


class Timeouts(TypedDict):
    """Fields of every client configuration."""

    api_timeout_ms: int
    request_timeout_ms: int
    connect_timeout_ms: int


def timeouts_ms(timeout_s: float) -> Timeouts:
    """`--timeout` as the client's three: the whole call, one request, and one connection within it."""
    timeout_ms = max(1, round(timeout_s * 1000))
    return {
        "api_timeout_ms": timeout_ms,
        "request_timeout_ms": min(timeout_ms, _REQUEST_TIMEOUT_MS),
        "connect_timeout_ms": min(timeout_ms, _CONNECT_TIMEOUT_MS),
    }


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end. Ctrl-C cancels the work, which closes its client, and raises KeyboardInterrupt."""
    _quiet_logging()
    return asyncio.run(work)


def with_admin(bootstrap: str, timeout_s: float, work: Callable[[Admin], Awaitable[T]]) -> T:
    """Connect, do `work`, disconnect: all of it within `timeout_s`, or TimeoutError naming the broker."""

    async def connected() -> T:
        config = AdminConfig(bootstrap=bootstrap, client_id=CLIENT_ID, **timeouts_ms(timeout_s))
        try:
            async with asyncio.timeout(timeout_s), Admin(config) as admin:
                return await work(admin)
        except TimeoutError as error:
            if str(error):  # the client's own, which says what was waited for
                raise
            raise TimeoutError(f"{bootstrap} did not finish within {timeout_s:g} s") from error

    return run_async(connected())


def _quiet_logging() -> None:
    """The client's log lines would stand beside the command's one sentence: they are shown at log level debug only."""
    level = os.environ.get("BARNABAS_LOG_LEVEL", "").lower()
    logging.basicConfig(level=logging.DEBUG if level == "debug" else logging.CRITICAL + 1)
