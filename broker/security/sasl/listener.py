"""SaslListener: what the authentications of one listener share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.security.sasl.session_lifetime import session_lifetime_ms

if TYPE_CHECKING:
    import asyncio

    from barnabas.broker.network.gating import Serve
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import AuthenticationProbe
    from barnabas.broker.security.sasl.failure_log import FailureLog
    from barnabas.broker.security.sasl.mechanisms import Mechanism, Mechanisms
    from barnabas.broker.security.sasl.unauthenticated import UnauthenticatedConnections
    from barnabas.broker.security.sasl.work_queue import WorkQueue
    from barnabas.protocol.framing import FrameLimit

AUTHENTICATION_SECONDS: Final = 30.0
"""Limit for a whole authentication. Kafka has only connections.max.idle.ms for a client that never ends it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateParts:
    """The parts of the broker that the authentications of all listeners share."""

    loop: asyncio.AbstractEventLoop
    serve: Serve
    """Serves the requests of authenticated clients, and ApiVersions before."""
    work: WorkQueue
    unauthenticated: UnauthenticatedConnections
    failures: FailureLog
    probe: AuthenticationProbe
    wall_ms: Callable[[], int]
    authenticated: Callable[[Session], None]
    """Called with a session whose principal has been set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslListener:
    """One listener whose security protocol is SASL_PLAINTEXT or SASL_SSL."""

    name: str
    parts: GateParts
    mechanisms: Callable[[], Mechanisms]
    """Those of the moment: they may change while the broker runs."""
    frame_limit: Callable[[], FrameLimit]
    """Limit on requests before the client is authenticated."""
    failure_delay_seconds: Callable[[], float]
    """connection.failed.authentication.delay.ms"""
    timeout_seconds: float = AUTHENTICATION_SECONDS

    def lifetime_ms(self, mechanism: Mechanism, expires_at_ms: int | None) -> int | None:
        """Return the lifetime of a session that begins now; None: no limit."""
        return session_lifetime_ms(mechanism.max_reauth_ms(), expires_at_ms, self.parts.wall_ms())

    def answer_versions(self, session: Session, frame: memoryview) -> Any:
        """Serve an ApiVersions request. As in Kafka it counts for no quota: the client is not known yet."""
        quota, session.quota = session.quota, None
        try:
            return self.parts.serve(session, frame)
        finally:
            session.quota = quota
