"""Builds what a SASL listener needs from its configuration. Whatever cannot be served is refused at start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.broker.security.sasl.listener import SaslListener
from barnabas.broker.security.sasl.mechanisms import Mechanism
from barnabas.broker.security.sasl.plain_users import PlainUsers
from barnabas.broker.security.sasl.scram_users import ImageScramUsers
from barnabas.broker.startup_error import StartupError
from barnabas.config.jaas import PLAIN_MODULE, JaasError
from barnabas.protocol.sasl.plain import PLAIN, PlainServer
from barnabas.protocol.sasl.scram_keys import SCRAM_MECHANISMS
from barnabas.protocol.sasl.scram_server import ScramServer

if TYPE_CHECKING:
    import asyncio

    from barnabas.broker.metadata.security.image import SecurityImage
    from barnabas.broker.network.gating import Serve
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import AuthenticationProbe
    from barnabas.broker.security.sasl.failure_log import FailureLog
    from barnabas.broker.security.sasl.scram_users import TokenLogins
    from barnabas.broker.security.sasl.work_queue import WorkQueue
    from barnabas.config.listener_view import ListenerView
    from barnabas.protocol.sasl.exchange import SaslServer

SASL_PROTOCOLS: Final = frozenset({"SASL_PLAINTEXT", "SASL_SSL"})

MAX_REAUTH: Final = "connections.max.reauth.ms"

BeginExchange = Callable[[], "SaslServer"]
"""Begins the server side of one exchange."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslParts:
    """The parts of the broker that all SASL listeners share."""

    loop: asyncio.AbstractEventLoop
    serve: Serve
    image: Callable[[], SecurityImage]
    tokens: TokenLogins
    secret: bytes
    """Random bytes of this broker's lifetime."""
    work: WorkQueue
    failures: FailureLog
    probe: AuthenticationProbe
    wall_ms: Callable[[], int]
    authenticated: Callable[[Session], None]
    more_mechanisms: Mapping[str, Callable[[ListenerView], BeginExchange]]
    """Further mechanisms by name; each may raise StartupError for a listener's configuration."""


def sasl_listener(properties: ListenerView, parts: SaslParts) -> SaslListener:
    """Build a listener whose protocol is one of SASL_PROTOCOLS. Raises StartupError."""
    names = properties.get_list("sasl.enabled.mechanisms")
    if not names:
        raise StartupError(f"{properties.setting('sasl.enabled.mechanisms')}: a SASL listener needs a mechanism")
    return SaslListener(
        name=properties.listener,
        loop=parts.loop,
        serve=parts.serve,
        mechanisms={
            name: Mechanism(
                _begin(name, properties, parts),
                partial(properties.get_int, "connections.max.reauth.ms", mechanism=name),
            )
            for name in names
        },
        work=parts.work,
        failures=parts.failures,
        probe=parts.probe,
        wall_ms=parts.wall_ms,
        authenticated=parts.authenticated,
        max_receive_bytes=properties.get_int("sasl.server.max.receive.size"),
        failure_delay_seconds=lambda: properties.get_int("connection.failed.authentication.delay.ms") / 1000,
        timeout_seconds=properties.get_int("sasl.authentication.timeout.ms") / 1000,
    )


def _begin(name: str, properties: ListenerView, parts: SaslParts) -> BeginExchange:
    if name == PLAIN:
        try:
            users = PlainUsers(properties)
        except JaasError as error:
            prefix = f"listener.name.{properties.listener.lower()}.plain"
            raise StartupError(
                f"{prefix}.sasl.jaas.config has the users of PLAIN, but {error}; "
                f'set it to: {PLAIN_MODULE} required user_<name>="<password>";'
            ) from error
        return lambda: PlainServer(users.verify)
    scram = SCRAM_MECHANISMS.get(name)
    if scram is not None:
        scram_users = ImageScramUsers(scram, parts.image, parts.tokens)
        return lambda: ScramServer(scram, scram_users, parts.secret)
    further = parts.more_mechanisms.get(name)
    if further is not None:
        return further(properties)
    served = ", ".join([PLAIN, *SCRAM_MECHANISMS, *parts.more_mechanisms])
    kerberos = " (Kerberos)" if name == "GSSAPI" else ""
    raise StartupError(
        f"{properties.setting('sasl.enabled.mechanisms')}: {name}{kerberos} is not served on listener "
        f"{properties.listener}; the mechanisms are {served}"
    )
