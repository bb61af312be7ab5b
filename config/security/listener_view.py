"""ListenerView: the properties of one listener, read through their prefixes.

`listener.name.<listener>.<mechanism>.<property>`, the listener and the mechanism in lower case, overrides
`listener.name.<listener>.<property>`, and that `<property>`. Different are, as in Kafka: sasl.jaas.config and
sasl.server.callback.handler.class count with listener and mechanism only, and ssl.client.auth on a SASL_SSL listener
with the listener's prefix only. Source: Kafka's ChannelBuilders, SaslChannelBuilder, JaasContext, ListenerName.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from barnabas.config.names import listener_prefix
from barnabas.config.security.secret import Secret

if TYPE_CHECKING:
    from barnabas.config.broker_config import BrokerConfig
    from barnabas.config.value import PropertyValue

OF_MECHANISM_ONLY: Final = frozenset({"sasl.jaas.config", "sasl.server.callback.handler.class"})
"""Properties that count with the prefix of a listener and a mechanism only."""

CLIENT_AUTH: Final = "ssl.client.auth"


class ListenerView:
    """The `ListenerProperties` of one listener in the newest configuration."""

    __slots__ = ("_current", "_listener", "_prefix", "_protocol")

    def __init__(self, current: Callable[[], BrokerConfig], listener: str, protocol: str) -> None:
        """`current` returns the configuration of the moment; `listener` is a name in upper case."""
        self._current = current
        self._listener = listener
        self._protocol = protocol
        self._prefix = listener_prefix(listener)

    @property
    def listener(self) -> str:
        """The listener's name, in upper case."""
        return self._listener

    @property
    def security_protocol(self) -> str:
        """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
        return self._protocol

    def get_str(self, name: str, *, mechanism: str | None = None) -> str | None:
        """Return a text; None if it is neither set nor has a default."""
        value = self._value(name, mechanism)
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name} is not a string")
        return value

    def get_secret(self, name: str, *, mechanism: str | None = None) -> Secret | None:
        """Return a password or a key; None if it is not set."""
        value = self._value(name, mechanism)
        if value is not None and not isinstance(value, Secret):
            raise TypeError(f"{name} is not a password")
        return value

    def get_int(self, name: str, *, mechanism: str | None = None) -> int:
        """Return a number that has a default."""
        value = self._value(name, mechanism)
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} is not an integer")
        return value

    def get_bool(self, name: str, *, mechanism: str | None = None) -> bool:
        """Return a switch that has a default."""
        value = self._value(name, mechanism)
        if not isinstance(value, bool):
            raise TypeError(f"{name} is not a boolean")
        return value

    def get_list(self, name: str, *, mechanism: str | None = None) -> tuple[str, ...]:
        """Return a list; empty if it is not set."""
        value = self._value(name, mechanism)
        if value is None:
            return ()
        if not isinstance(value, tuple):
            raise TypeError(f"{name} is not a list")
        return value

    def setting(self, name: str, *, mechanism: str | None = None) -> str:
        """Return the property that counts for a sentence: "listener.name.a.ssl.client.auth=none in --set"."""
        config = self._current()
        for candidate in self._candidates(name, mechanism):
            if config.is_set(candidate):
                return config.setting(candidate)
        return config.setting(name)

    def _value(self, name: str, mechanism: str | None) -> PropertyValue:
        config = self._current()
        for candidate in self._candidates(name, mechanism):
            if config.is_set(candidate):
                return config.get(candidate)
        return config.default(name)

    def _candidates(self, name: str, mechanism: str | None) -> Iterator[str]:
        """Yield the names that may set the property, the strongest first."""
        if mechanism is not None:
            yield f"{self._prefix}{mechanism.lower()}.{name}"
        if name in OF_MECHANISM_ONLY:
            return
        yield self._prefix + name
        if not (name == CLIENT_AUTH and self._protocol == "SASL_SSL"):
            yield name
