"""ClientListeners: the listeners of a broker, from their bound sockets to the protocols of accepted connections.

PLAINTEXT        Connection
SSL              TlsTransport, Connection
SASL_PLAINTEXT   Connection with a gate
SASL_SSL         TlsTransport, Connection with a gate
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.network.acceptor import Acceptor
from barnabas.broker.network.connection import Connection
from barnabas.broker.network.session import Session
from barnabas.broker.startup_error import StartupError
from barnabas.config import ConfigError

if TYPE_CHECKING:
    import asyncio
    import socket
    from collections.abc import Sequence

    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.network.connection_registry import ConnectionRegistry
    from barnabas.broker.network.gating import Gate
    from barnabas.broker.network.tls_connections import TlsConnections
    from barnabas.broker.probes import BrokerProbes
    from barnabas.broker.quotas.connection_rates import ConnectionRates
    from barnabas.broker.security.sasl.failure_log import FailureLog
    from barnabas.broker.security.tls.certificates import Certificates
    from barnabas.broker.security.tls.listener_context import ListenerContext
    from barnabas.config import BrokerConfig, Listener
    from barnabas.transport.handshakes import HandshakeThreads

logger = logging.getLogger(__name__)

_ENCRYPTED: Final = frozenset({"SSL", "SASL_SSL"})
_AUTHENTICATED: Final = frozenset({"SASL_PLAINTEXT", "SASL_SSL"})

NewGate = Callable[[], "Gate"]


class ClientListeners:
    """Owns the acceptors, and the TLS of listeners that have it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        config: LiveConfig,
        connections: ConnectionRegistry,
        rates: ConnectionRates,
        probes: BrokerProbes,
        failures: FailureLog,
        certificates: Certificates,
    ) -> None:
        self._loop = loop
        self._config = config
        self._connections = connections
        self._rates = rates
        self._probes = probes
        self._failures = failures
        self._certificates = certificates
        self._acceptors: list[Acceptor] = []
        self._tls: list[TlsConnections] = []
        self._handshakes: HandshakeThreads | None = None
        self._contexts: list[ListenerContext] = []

    def load_certificates(self) -> None:
        """Load the certificates of all listeners with TLS. Blocks. Raises StartupError, naming the listener."""
        for name, protocol in self._protocols():
            if protocol in _ENCRYPTED:
                self._contexts.append(self._certificates.load(self._config.listener_properties(name)))
        if self._contexts:
            self._config.follow(self._ensure_certificates, self._certificates.refresh)

    def start(self, sockets: Sequence[socket.socket], gates: Mapping[str, NewGate], backlog: int) -> None:
        """Accept clients on the bound sockets, which are in the order of `listeners`.

        `gates` creates the gate of a connection by the name of its SASL listener. Raises StartupError.
        """
        factories = self._factories(gates)
        listeners = self._config.static.listeners
        for listener, bound in zip(listeners, sockets, strict=True):
            acceptor = Acceptor(
                self._loop,
                listener.name,
                bound,
                self._connections.quotas,
                self._rates,
                self._probes.connections,
                self._connections.warnings,
                factories[listener.name],
            )
            acceptor.start(backlog)
            self._acceptors.append(acceptor)
            self._log(listener, bound)

    def _ensure_certificates(self, changed: BrokerConfig) -> None:
        """Refuse changed properties of a listener with which it could not serve TLS. Blocks. Raises ConfigError."""
        from barnabas.transport.errors import TlsConfigError
        from barnabas.transport.settings import TlsSettings

        for context in self._contexts:
            before = self._config.listener_properties(context.listener)
            after = changed.listener_properties(context.listener)
            try:
                # A file that is broken now does not block changes of other properties.
                if TlsSettings.of_server(before) != TlsSettings.of_server(after):
                    context.validate(after)
            except TlsConfigError as error:
                raise ConfigError(f"the listener {context.listener} could not serve TLS: {error}") from error

    def close(self) -> None:
        """Stop accepting, and cut off unfinished handshakes. Accepted connections go on."""
        for acceptor in self._acceptors:
            acceptor.close()
        for tls in self._tls:
            tls.close()
        if self._handshakes is not None:
            self._handshakes.close()

    def _protocols(self) -> list[tuple[str, str]]:
        static = self._config.static
        return [(listener.name, static.security_protocol(listener.name)) for listener in static.listeners]

    def _factories(self, gates: Mapping[str, NewGate]) -> dict[str, Callable[[str], asyncio.BaseProtocol]]:
        """Return what creates the protocol of an accepted connection, by listener."""
        tls = self._new_tls()
        protocols = dict(self._protocols())
        return {
            listener.name: self._factory(
                listener, protocols[listener.name], tls.get(listener.name), gates.get(listener.name)
            )
            for listener in self._config.static.listeners
        }

    def _factory(
        self, listener: Listener, protocol: str, tls: TlsConnections | None, new_gate: NewGate | None
    ) -> Callable[[str], asyncio.BaseProtocol]:
        if new_gate is None and protocol in _AUTHENTICATED:
            raise StartupError(
                f"the listener {listener.name} requires {protocol}, and no SASL mechanism is set up for it"
            )
        if tls is None and protocol in _ENCRYPTED:
            raise StartupError(f"the listener {listener.name} requires {protocol}, and its certificate is not loaded")

        def connection(host: str) -> Connection:
            session = Session(listener, protocol)
            session.host = host
            return Connection(self._connections, session, None if new_gate is None else new_gate())

        return connection if tls is None else lambda host: tls.wrap(connection(host))

    def _new_tls(self) -> dict[str, TlsConnections]:
        if not self._contexts:
            return {}
        from barnabas.broker.network.tls_connections import TlsConnections
        from barnabas.broker.security.tls.principal_mapper import MappingRuleError
        from barnabas.transport.handshakes import HandshakeThreads
        from barnabas.transport.tls_transport import new_scratch

        self._handshakes = HandshakeThreads(self._loop)
        scratch = new_scratch()
        by_listener: dict[str, TlsConnections] = {}
        for context in self._contexts:
            try:
                by_listener[context.listener] = TlsConnections(
                    self._config.listener_properties(context.listener),
                    self._loop,
                    context=context.current,
                    handshakes=self._handshakes,
                    scratch=scratch,
                    quotas=self._connections.quotas,
                    failures=self._failures,
                    probe=self._probes.tls,
                )
            except MappingRuleError as error:
                raise StartupError(
                    f"ssl.principal.mapping.rules of the listener {context.listener}: {error}"
                ) from error
        self._tls = list(by_listener.values())
        return by_listener

    def _log(self, listener: Listener, bound: socket.socket) -> None:
        port = bound.getsockname()[1]
        advertised = self._config.static.advertised_listeners[listener.name]
        logger.info(
            "listening, listener=%s port=%d advertised=%s:%s",
            listener,
            port,
            advertised.host or "(as each client reaches it)",
            advertised.port or port,
        )
