"""Failed authentications in the log: a line per host, mechanism, reason and user, then their number every 10 seconds.

At most USERS users have lines of their own for a host, mechanism and reason.

A client that retries with a wrong password, or a thousand that scan the port, fill no disk. Nothing of a message is
written but the claimed user's name, made printable.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from barnabas.broker.printable import printable
from barnabas.broker.repeated_warnings import Event, RepeatedWarnings

if TYPE_CHECKING:
    import asyncio

    from barnabas.broker.network.session import Session

USERS: Final = 10

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
            lines=USERS,
            distinct=printable(user or ""),  # cut: a claimed name may be as long as a frame
        )

    def failed_handshake(self, host: str, listener: str, reason: str, *, detail: str = "") -> None:
        """Log a TLS handshake that failed, or count it. `reason` is one of few texts."""
        self._warnings.warn(
            logger,
            Event(host, "TLS handshake failed", f" listener={listener}: {reason}"),
            "TLS handshake failed, host=%s listener=%s: %s%s",
            host,
            listener,
            reason,
            f" ({printable(detail)})" if detail else "",
            lines=1,
        )

    def session_over(self, session: Session, listener: str) -> None:
        """Log a connection that is closed because its session is over, or count it."""
        self._warnings.warn(
            logger,
            Event(session.host, "a connection was closed", f" listener={listener}: its session was over"),
            "closing the connection of %s: its session is over, and it did not re-authenticate",
            session,
            level=logging.INFO,
        )

    def bug(self, session: Session, error: BaseException) -> None:
        """Log a bug in a mechanism with its traceback, or count it."""
        event = Event(session.host, "a bug in a SASL mechanism")
        self._warnings.bug(logger, event, error, "a bug in a SASL mechanism, client %s", session)

    def broken_tls(self, host: str, listener: str, reason: str) -> None:
        """Log a connection that TLS closes after its handshake, or count it."""
        self._warnings.warn(
            logger,
            Event(host, "TLS broke after the handshake", f" listener={listener}"),
            "TLS of %s broke, listener=%s: %s",
            host,
            listener,
            printable(reason),
            level=logging.INFO,
        )
