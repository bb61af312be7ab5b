"""Failed authentications in the log: one line per host, mechanism and reason, then their number every 10 seconds.

A client that retries with a wrong password, or a thousand that scan the port, fill no disk. Nothing of a message is
written but the claimed user's name, made printable.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.broker.printable import printable
from barnabas.broker.repeated_warnings import Event, RepeatedWarnings

if TYPE_CHECKING:
    import asyncio

logger = logging.getLogger(__name__)


class FailureLog:
    """One broker's failures. For the event loop's thread only."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # Separate from other warnings: a flood of broken frames must not hide a host's failures.
        self._warnings = RepeatedWarnings(loop)

    def failed(
        self, host: str, listener: str, mechanism: str, reason: str, *, user: str | None = None, detail: str = ""
    ) -> None:
        """Log a failure, or count it if the same one was logged a moment ago. `reason` is one of few texts."""
        self._warnings.warn(
            logger,
            Event(host, "authentication failed", f" listener={listener} mechanism={mechanism}: {reason}"),
            "authentication failed, host=%s listener=%s mechanism=%s%s: %s%s",
            host,
            listener,
            mechanism,
            "" if user is None else f" user={printable(user)}",
            reason,
            f" ({printable(detail)})" if detail else "",
            lines=1,
        )
