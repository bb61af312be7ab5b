"""A command's use of the client: event loop, configuration from the shared options, timeout."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from barnabas.clients.config import AdminConfig
from barnabas.commands.options import client_security

if TYPE_CHECKING:
    from barnabas.clients.admin.admin import Admin

CLIENT_ID = "barnabas-command"

_REQUEST_TIMEOUT_MS = 30_000
_CONNECT_TIMEOUT_MS = 10_000

T = TypeVar("T")


class Timeouts(TypedDict):
    """The timeouts of every client configuration."""

    api_timeout_ms: int
    request_timeout_ms: int
    connect_timeout_ms: int


def timeouts_ms(timeout_s: float) -> Timeouts:
    """Convert `--timeout` to the client's timeouts: the whole call, one request, and one connection attempt."""
    timeout_ms = max(1, round(timeout_s * 1000))
    return {
        "api_timeout_ms": timeout_ms,
        "request_timeout_ms": min(timeout_ms, _REQUEST_TIMEOUT_MS),
        "connect_timeout_ms": min(timeout_ms, _CONNECT_TIMEOUT_MS),
    }


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run `work`. Ctrl-C cancels it, so that it closes its client, and raises KeyboardInterrupt."""
    _quiet_logging()
    return asyncio.run(work)


def run_limited(bootstrap: str, timeout_s: float, work: Callable[[AdminConfig], Awaitable[T]]) -> T:
    """Run `work` with a client's configuration. Raises TimeoutError, naming the broker, if it exceeds `timeout_s`."""

    async def limited() -> T:
        config = AdminConfig(
            bootstrap=bootstrap, client_id=CLIENT_ID, security=client_security(), **timeouts_ms(timeout_s)
        )
        try:
            async with asyncio.timeout(timeout_s):
                return await work(config)
        except TimeoutError as error:
            if str(error):  # the client's own, with a message
                raise
            raise TimeoutError(f"{bootstrap} did not finish within {timeout_s:g} s") from error

    return run_async(limited())


def with_admin(bootstrap: str, timeout_s: float, work: Callable[[Admin], Awaitable[T]]) -> T:
    """Connect, run `work` and disconnect. Raises TimeoutError, naming the broker, if all that exceeds `timeout_s`."""
    from barnabas.clients.admin.admin import Admin  # a fifth of a start, which `produce` and `consume` do not need

    async def connected(config: AdminConfig) -> T:
        async with Admin(config) as admin:
            return await work(admin)

    return run_limited(bootstrap, timeout_s, connected)


def _quiet_logging() -> None:
    """Hide the client's log lines, which would repeat the command's one sentence, unless the level is debug."""
    level = os.environ.get("BARNABAS_LOG_LEVEL", "").lower()
    logging.basicConfig(level=logging.DEBUG if level == "debug" else logging.CRITICAL + 1)
