"""What the parts of a listener read of the configuration: its properties, by their names without prefixes.

`listener.name.<listener>.<property>` overrides `<property>`, and `listener.name.<listener>.<mechanism>.<property>`, all
in lower case, both. Values are those of the moment: some change while the broker runs.
"""

from __future__ import annotations

from typing import Protocol

from barnabas.config.security.secret import Secret


class ListenerProperties(Protocol):
    """The properties of one listener. A name is Kafka's, such as `ssl.keystore.location`."""

    @property
    def listener(self) -> str:
        """The listener's name, in upper case."""
        ...

    @property
    def security_protocol(self) -> str:
        """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
        ...

    def get_str(self, name: str, *, mechanism: str | None = None) -> str | None:
        """Return a text; None if it is neither set nor has a default."""
        ...

    def get_secret(self, name: str, *, mechanism: str | None = None) -> Secret | None:
        """Return a password or a key."""
        ...

    def get_int(self, name: str, *, mechanism: str | None = None) -> int:
        """Return a number that has a default."""
        ...

    def get_bool(self, name: str, *, mechanism: str | None = None) -> bool:
        """Return a switch that has a default."""
        ...

    def get_list(self, name: str, *, mechanism: str | None = None) -> tuple[str, ...]:
        """Return a list; empty if it is not set."""
        ...
