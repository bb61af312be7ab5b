"""The gates of a broker's SASL listeners. Imported only by a broker that has one."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.broker.security.sasl.gate import SaslGate
from barnabas.broker.security.sasl.listener import GateParts
from barnabas.broker.security.sasl.scram_users import NoTokens
from barnabas.broker.security.sasl.setup import MechanismParts, sasl_listener
from barnabas.broker.security.sasl.unauthenticated import UnauthenticatedConnections
from barnabas.broker.security.sasl.work_queue import WorkQueue
from barnabas.broker.security.tokens.logins import ScramTokenLogins

if TYPE_CHECKING:
    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.metadata.security.image import SecurityImage
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.network.connection_registry import ConnectionRegistry
    from barnabas.broker.network.gating import Gate
    from barnabas.broker.probes import BrokerProbes
    from barnabas.broker.security.sasl.failure_log import FailureLog
    from barnabas.broker.security.tokens.lifetimes import TokenLifetimes
    from barnabas.config.security.listener_view import ListenerView
    from barnabas.protocol.sasl.exchange import SaslServer

_SECRET_BYTES: Final = 32


def begin_gates(
    listeners: Iterable[str],
    *,
    config: LiveConfig,
    metadata: MetadataView,
    connections: ConnectionRegistry,
    tokens: TokenLifetimes | None,
    failures: FailureLog,
    probes: BrokerProbes,
    wall_ms: Callable[[], int],
) -> Mapping[str, Callable[[], Gate]]:
    """Return, for each of these SASL listeners, what begins the authentication of a connection.

    Raises StartupError if the configuration of one cannot be served.
    """

    def image() -> SecurityImage:
        return metadata.image.security

    parts = GateParts(
        loop=connections.loop,
        serve=connections.dispatcher.serve,
        work=WorkQueue(connections.loop, connections.blocking_io),
        unauthenticated=UnauthenticatedConnections(lambda: connections.quotas.unauthenticated_max),
        failures=failures,
        probe=probes.authentications,
        wall_ms=wall_ms,
        authenticated=connections.bind_access,
    )
    mechanisms = MechanismParts(
        image=image,
        tokens=NoTokens() if tokens is None else ScramTokenLogins(tokens.passwords, image, wall_ms),
        secret=secrets.token_bytes(_SECRET_BYTES),
        further={"OAUTHBEARER": _begin_oauthbearer},
    )
    return {
        name: partial(SaslGate, sasl_listener(config.listener_properties(name), parts, mechanisms))
        for name in listeners
    }


def _begin_oauthbearer(properties: ListenerView) -> Callable[[], SaslServer]:
    # Imported here: PyJWT and cryptography would add 50 ms to the start of every broker with a SASL listener.
    from barnabas.broker.security.oauth.mechanism import begin_oauthbearer

    return begin_oauthbearer(properties)
