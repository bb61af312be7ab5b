"""TLS of one listener's connections: handshakes within limits, principals of certificates, failures in the log.

A client's connection reaches its protocol after the handshake. The limits until then: ssl.handshake.timeout.ms, the
bounds on received bytes (transport.records), and the number of unfinished handshakes. Above that number the oldest
unfinished one is cut off: clients take milliseconds, so those that never finish give way first.
"""

from __future__ import annotations

import logging
import ssl
from typing import TYPE_CHECKING

from barnabas.broker.security.principal import user
from barnabas.broker.security.tls.distinguished_names import subject_of
from barnabas.broker.security.tls.principal_mapper import DEFAULT_RULES, NoMatchingRuleError, PrincipalMapper
from barnabas.transport.records import BadRecordError
from barnabas.transport.tls_transport import TlsParts, TlsTransport

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from barnabas.broker.network.connection import Connection
    from barnabas.broker.network.connection_quotas import ConnectionQuotas
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import TlsProbe
    from barnabas.broker.security.sasl.failure_log import FailureLog
    from barnabas.config.security.listener_properties import ListenerProperties
    from barnabas.transport.handshakes import HandshakeRunner

logger = logging.getLogger(__name__)


class TlsConnections:
    """Wraps the connections of one listener."""

    def __init__(
        self,
        properties: ListenerProperties,
        loop: asyncio.AbstractEventLoop,
        *,
        context: Callable[[], ssl.SSLContext],
        handshakes: HandshakeRunner,
        scratch: memoryview,
        quotas: ConnectionQuotas,
        failures: FailureLog,
        probe: TlsProbe,
    ) -> None:
        """Raises MappingRuleError for ssl.principal.mapping.rules."""
        self._listener = properties.listener
        self._maps_principals = properties.security_protocol == "SSL"
        self._mapper = PrincipalMapper(properties.get_str("ssl.principal.mapping.rules") or DEFAULT_RULES)
        self._loop = loop
        self._quotas = quotas
        self._failures = failures
        self._probe = probe
        self._unfinished: dict[TlsTransport, None] = {}
        """In the order of their acceptance."""
        self._parts = TlsParts(
            context=context,
            handshakes=handshakes,
            scratch=scratch,
            handshake_seconds=properties.get_int("ssl.handshake.timeout.ms") / 1000,
            failure_seconds=properties.get_int("connection.failed.authentication.delay.ms") / 1000,
            on_broken=self._broken,
        )

    def wrap(self, connection: Connection) -> TlsTransport:
        """Return the protocol for the event loop, which gives `connection` its transport after the handshake."""
        session = connection.session
        transport = TlsTransport(
            self._loop,
            connection,
            self._parts,
            on_failed=lambda error: self._failed(transport, connection, error),
            on_complete=lambda complete: self._completed(complete, session),
        )
        self._unfinished[transport] = None
        limit = self._quotas.unauthenticated_max
        if limit is not None and len(self._unfinished) > limit:
            oldest = next(iter(self._unfinished))
            del self._unfinished[oldest]
            oldest.abort()
        return transport

    def close(self) -> None:
        """Cut off unfinished handshakes."""
        for transport in list(self._unfinished):
            transport.abort()
        self._unfinished.clear()

    def _completed(self, transport: TlsTransport, session: Session) -> None:
        """Set the principal. On a SASL listener it is SASL's, and the certificate is only checked."""
        if self._maps_principals:
            certificate = transport.get_extra_info("peercert_der")
            if certificate is not None:
                session.principal = user(self._mapper.name(subject_of(certificate)))
        self._unfinished.pop(transport, None)
        self._probe.count_completed(self._listener)

    def _failed(self, transport: TlsTransport, connection: Connection, error: Exception) -> None:
        session = connection.session
        connection.discard()
        self._unfinished.pop(transport, None)
        self._quotas.closed(session.listener.name, session.host)
        reason, text, detail = _explain(error)
        self._probe.count_failed(self._listener, reason)
        if reason == "disconnected":
            logger.debug("%s disconnected before the end of the handshake, listener=%s", session.host, self._listener)
            return
        self._failures.failed_handshake(session.host, self._listener, text, detail=detail)

    def _broken(self, transport: TlsTransport, reason: str) -> None:
        peer = transport.get_extra_info("peername")
        self._failures.broken_tls(str(peer[0]) if peer else "?", self._listener, reason)


def _explain(error: Exception) -> tuple[str, str, str]:
    """Return the label of the metric, the sentence of the log, and what the peer determined of it."""
    if isinstance(error, BadRecordError):
        return "not_tls", str(error), ""
    if isinstance(error, TimeoutError):
        return "timeout", str(error), ""
    if isinstance(error, NoMatchingRuleError):
        return "no_principal", "no rule of ssl.principal.mapping.rules applies to the certificate", str(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        return "bad_certificate", f"the client's certificate is refused: {error.verify_message}", ""
    if isinstance(error, ssl.SSLError):
        reason = error.reason or str(error)
        if reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
            return "no_certificate", "the client sent no certificate, and ssl.client.auth=required", ""
        return "protocol", reason.lower().replace("_", " "), ""
    if isinstance(error, OSError):
        return "disconnected", "the client disconnected", ""
    return "protocol", "an error of TLS", str(error)
