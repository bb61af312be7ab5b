"""The users of PLAIN: options `user_<name>="<password>"` of the login module in the listener's sasl.jaas.config.

The property may change while the broker runs; a login reads it. A new value that cannot be used leaves the users as
they were, with one line in the log. Source: Kafka's PlainServerCallbackHandler.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.config.security.jaas import PLAIN_MODULE, JaasError, parse_jaas
from barnabas.config.security.secret import Secret
from barnabas.protocol.sasl.plain import PLAIN

if TYPE_CHECKING:
    from barnabas.config.security.listener_properties import ListenerProperties

logger = logging.getLogger(__name__)

_USER: Final = "user_"
_NOBODY: Final = Secret("")
"""Compared with the password of an unknown user, so that the answer takes as long as for a known one."""


class PlainUsers:
    """The users of one listener."""

    def __init__(self, properties: ListenerProperties) -> None:
        """Raises JaasError if the property is missing or cannot be used."""
        self._properties = properties
        self._text = properties.get_secret("sasl.jaas.config", mechanism=PLAIN)
        self._passwords = _passwords(self._text)

    def verify(self, user: str, password: str) -> bool:
        """Return whether the password is the user's."""
        self._refresh()
        expected = self._passwords.get(user)
        matches = (expected or _NOBODY).matches(password)
        return matches and expected is not None

    def _refresh(self) -> None:
        text = self._properties.get_secret("sasl.jaas.config", mechanism=PLAIN)
        if text is self._text:
            return
        self._text = text
        try:
            self._passwords = _passwords(text)
        except JaasError as error:
            logger.error(
                "the users of PLAIN on listener %s stay as they were: the new sasl.jaas.config is refused: %s",
                self._properties.listener,
                error,
            )


def _passwords(text: Secret | None) -> Mapping[str, Secret]:
    if text is None:
        raise JaasError("it is not set")
    entry = parse_jaas(text.reveal())
    if entry.module != PLAIN_MODULE:
        raise JaasError(f"its login module must be {PLAIN_MODULE}")
    return {
        name.removeprefix(_USER): Secret(password) for name, password in entry.options.items() if name.startswith(_USER)
    }
