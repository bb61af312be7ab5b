"""Failed authentications in the log: one line per host, mechanism and reason, then their number every WINDOW_SECONDS.

A window without the failure ends the count. A client that retries with a wrong password, or a thousand that scan the
port, fill no disk. Nothing of a message is written but the claimed user's name, made printable.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.printable import printable

if TYPE_CHECKING:
    import asyncio

logger = logging.getLogger(__name__)

WINDOW_SECONDS: Final = 10.0

MAX_KEYS: Final = 500
"""Different failures in one window that get a line of their own."""

OTHERS: Final = "other hosts"
"""Stands for the hosts of all further failures."""


class _Key(NamedTuple):
    host: str
    listener: str
    mechanism: str
    reason: str


class FailureLog:
    """One broker's failures. For the event loop's thread only."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._repeated: dict[_Key, int] = {}
        """Number of failures in the window after the first one."""

    def failed(
        self, host: str, listener: str, mechanism: str, reason: str, *, user: str | None = None, detail: str = ""
    ) -> None:
        """Log a failure, or count it if the same one was logged a moment ago."""
        key = _Key(host, listener, mechanism, reason)
        if key not in self._repeated and len(self._repeated) >= MAX_KEYS:
            key = _Key(OTHERS, listener, mechanism, reason)
        if key in self._repeated:
            self._repeated[key] += 1
            return
        self._repeated[key] = 0
        logger.warning(
            "authentication failed, host=%s listener=%s mechanism=%s%s: %s%s",
            key.host,
            listener,
            mechanism,
            "" if user is None else f" user={printable(user)}",
            reason,
            f" ({printable(detail)})" if detail else "",
        )
        self._loop.call_later(WINDOW_SECONDS, self._end_window, key)

    def _end_window(self, key: _Key) -> None:
        repeated = self._repeated[key]
        if not repeated:
            del self._repeated[key]
            return
        logger.warning(
            "authentication failed %d more times in %d s, host=%s listener=%s mechanism=%s: %s",
            repeated,
            WINDOW_SECONDS,
            key.host,
            key.listener,
            key.mechanism,
            key.reason,
        )
        self._repeated[key] = 0
        self._loop.call_later(WINDOW_SECONDS, self._end_window, key)
