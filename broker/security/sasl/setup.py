"""Builds what a SASL listener needs from its configuration. Whatever cannot be served is refused at start."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.broker.security.sasl.listener import GateParts, SaslListener
from barnabas.broker.security.sasl.mechanisms import Mechanism
from barnabas.broker.security.sasl.plain_users import PlainUsers
from barnabas.broker.security.sasl.scram_users import ImageScramUsers
from barnabas.broker.startup_error import StartupError
from barnabas.config.security.jaas import JaasError
from barnabas.protocol.framing import FrameLimit
from barnabas.protocol.sasl.oauthbearer import OAUTHBEARER
from barnabas.protocol.sasl.plain import PLAIN, PlainServer
from barnabas.protocol.sasl.scram_keys import SCRAM_MECHANISMS
from barnabas.protocol.sasl.scram_server import ScramServer

if TYPE_CHECKING:
    from barnabas.broker.metadata.security.image import SecurityImage
    from barnabas.broker.security.sasl.mechanisms import Mechanisms
    from barnabas.broker.security.sasl.scram_users import TokenLogins
    from barnabas.config.security.listener_view import ListenerView
    from barnabas.protocol.sasl.exchange import SaslServer

logger = logging.getLogger(__name__)

ENABLED: Final = "sasl.enabled.mechanisms"
MAX_REAUTH: Final = "connections.max.reauth.ms"
MAX_RECEIVE: Final = "sasl.server.max.receive.size"

MAX_RECEIVE_BYTES: Final = 16 * 1024
"""Larger than any request of PLAIN and SCRAM: peers that never authenticate must not take Kafka's 512 KiB each."""

MAX_TOKEN_RECEIVE_BYTES: Final = 160 * 1024
"""With OAUTHBEARER, whose tokens may be long."""

OWN_LIMIT: Final = "the broker's limit for clients that have not logged in"
"""In errors about a frame above one of these two, which no property sets."""

BeginExchange = Callable[[], "SaslServer"]
"""Begins the server side of one exchange."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismParts:
    """The parts of the broker that the mechanisms of all listeners share."""

    image: Callable[[], SecurityImage]
    tokens: TokenLogins
    secret: bytes
    """Random bytes of this broker's lifetime."""
    further: Mapping[str, Callable[[ListenerView], BeginExchange]]
    """Further mechanisms by name; each may raise StartupError for a listener's configuration."""


def sasl_listener(properties: ListenerView, parts: GateParts, mechanisms: MechanismParts) -> SaslListener:
    """Build a listener whose protocol is SASL_PLAINTEXT or SASL_SSL. Raises StartupError."""
    return SaslListener(
        name=properties.listener,
        parts=parts,
        mechanisms=_LiveMechanisms(properties, mechanisms).current,
        frame_limit=lambda: _frame_limit(properties),
        failure_delay_seconds=lambda: properties.get_int("connection.failed.authentication.delay.ms") / 1000,
        timeout_seconds=properties.get_int("sasl.authentication.timeout.ms") / 1000,
    )


def _frame_limit(properties: ListenerView) -> FrameLimit:
    """Return the limit on requests before the client is authenticated."""
    needed = MAX_TOKEN_RECEIVE_BYTES if OAUTHBEARER in properties.get_list(ENABLED) else MAX_RECEIVE_BYTES
    configured = properties.get_int(MAX_RECEIVE)
    return FrameLimit(configured, MAX_RECEIVE) if configured <= needed else FrameLimit(needed, OWN_LIMIT)


class _LiveMechanisms:
    """The mechanisms of a listener, which follow changes of sasl.enabled.mechanisms."""

    def __init__(self, properties: ListenerView, parts: MechanismParts) -> None:
        """Raises StartupError if one cannot be served."""
        self._properties = properties
        self._parts = parts
        self._names = properties.get_list(ENABLED)
        self._mechanisms = {name: self._create(name) for name in self._names}

    def current(self) -> Mechanisms:
        """Return the mechanisms for the next authentication. One that cannot be served is left out and logged once."""
        names = self._properties.get_list(ENABLED)
        if names != self._names:
            self._names = names
            mechanisms = {}
            for name in names:
                try:
                    mechanisms[name] = self._mechanisms.get(name) or self._create(name)
                except StartupError as error:
                    logger.error("%s", error)
            self._mechanisms = mechanisms
        return self._mechanisms

    def _create(self, name: str) -> Mechanism:
        properties = self._properties
        return Mechanism(_begin(name, properties, self._parts), partial(properties.get_int, MAX_REAUTH, mechanism=name))


def _begin(name: str, properties: ListenerView, parts: MechanismParts) -> BeginExchange:
    if name == PLAIN:
        try:
            users = PlainUsers(properties)
        except JaasError as error:
            raise StartupError(
                f"listener {properties.listener} serves PLAIN without users: its sasl.jaas.config: {error}"
            ) from error
        return lambda: PlainServer(users.verify)
    scram = SCRAM_MECHANISMS.get(name)
    if scram is not None:
        scram_users = ImageScramUsers(scram, parts.image, parts.tokens, parts.secret)
        return lambda: ScramServer(scram, scram_users, parts.secret)
    further = parts.further.get(name)
    if further is not None:
        return further(properties)
    raise StartupError(f"{properties.setting(ENABLED)}: {name} is not served on listener {properties.listener}")
