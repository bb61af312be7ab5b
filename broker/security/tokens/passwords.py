"""TokenPasswords: the HMACs of delegation tokens. The metadata log does not have them; they follow from the secret."""

from __future__ import annotations

import hmac
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.metadata.security.image import DelegationToken
    from barnabas.config.secret import Secret


class TokenPasswords:
    """HMAC-SHA512 of each token's id, by delegation.token.secret.key. For any thread."""

    def __init__(self, secret: Secret) -> None:
        self._key = secret.reveal().encode()
        self._lock = threading.Lock()
        self._ids: dict[bytes, str] = {}
        """Token ids by HMAC, of the tokens that `find` has seen."""

    def of(self, token_id: str) -> bytes:
        """Return a token's HMAC, 64 bytes."""
        return hmac.digest(self._key, token_id.encode(), "sha512")

    def find(self, tokens: Mapping[str, DelegationToken], given: bytes) -> DelegationToken | None:
        """Return the token with the HMAC; None: there is none."""
        with self._lock:
            known = self._ids.get(given)
            if known is None:
                # Compared as keys of a dict: whoever could measure that would have to guess 64 bytes of a MAC.
                self._ids = {self.of(token_id): token_id for token_id in tokens}
                known = self._ids.get(given)
        return None if known is None else tokens.get(known)

    def __repr__(self) -> str:
        return "TokenPasswords([hidden])"
