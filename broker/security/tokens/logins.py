"""ScramTokenLogins: login by SCRAM with a delegation token, whose id is the name and whose HMAC is the password."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.broker.security.principal import parse_principal
from barnabas.protocol.sasl.scram_keys import MIN_ITERATIONS, SALT_BYTES, DerivedKeys, ScramMechanism, keys_of_password
from barnabas.protocol.sasl.scram_server import TokenLogin

if TYPE_CHECKING:
    from barnabas.broker.metadata.security.image import SecurityImage
    from barnabas.broker.security.tokens.passwords import TokenPasswords

MAX_KEPT_KEYS: Final = 1000
"""Derived keys that are kept, because deriving takes milliseconds and a job's workers log in with one token."""


class ScramTokenLogins:
    """Implements broker.security.sasl.scram_users.TokenLogins."""

    def __init__(
        self, passwords: TokenPasswords, image: Callable[[], SecurityImage], wall_ms: Callable[[], int]
    ) -> None:
        """`image` returns the current image: a token that was deleted no longer logs in."""
        self._passwords = passwords
        self._image = image
        self._wall_ms = wall_ms
        self._keys: dict[tuple[str, str], DerivedKeys] = {}

    def login(self, token_id: str, mechanism: ScramMechanism) -> TokenLogin | None:
        """Return how a token logs in; None: there is no such token, or it has expired."""
        token = self._image().tokens.get(token_id)
        if token is None:
            return None
        expires_ms = min(token.expires_ms, token.max_ms)
        if expires_ms < self._wall_ms():
            return None
        return TokenLogin(parse_principal(token.owner).name, expires_ms, lambda: self._derive(token_id, mechanism))

    def _derive(self, token_id: str, mechanism: ScramMechanism) -> DerivedKeys:
        key = (token_id, mechanism.name)
        found = self._keys.get(key)
        if found is None:
            password = base64.b64encode(self._passwords.of(token_id)).decode()
            found = keys_of_password(mechanism, password, secrets.token_bytes(SALT_BYTES), MIN_ITERATIONS)
            if len(self._keys) >= MAX_KEPT_KEYS:
                self._keys.clear()
            self._keys[key] = found
        return found
