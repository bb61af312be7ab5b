"""TokenPasswords: the HMACs of delegation tokens. The metadata log does not have them; they follow from the secret."""

from __future__ import annotations

import hmac
import threading
from collections.abc import Mapping, Set
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.metadata.security.image import DelegationToken
    from barnabas.config.security.secret import Secret


class TokenPasswords:
    """HMAC-SHA512 of each token's id, by delegation.token.secret.key. For any thread."""

    def __init__(self, secret: Secret) -> None:
        self._key = secret.reveal().encode()
        self._lock = threading.Lock()
        self._ids: dict[bytes, str] = {}
        """Token ids by HMAC, of the tokens that `find` has seen."""
        self._hmacs: dict[str, bytes] = {}
        """The inverse of `_ids`."""

    def of(self, token_id: str) -> bytes:
        """Return a token's HMAC, 64 bytes."""
        return hmac.digest(self._key, token_id.encode(), "sha512")

    def find(self, tokens: Mapping[str, DelegationToken], given: bytes) -> DelegationToken | None:
        """Return the token with the HMAC; None: there is none."""
        with self._lock:
            known = self._ids.get(given)
            if known is None:
                self._update(tokens.keys())
                # Compared as keys of a dict: whoever could measure that would have to guess 64 bytes of a MAC.
                known = self._ids.get(given)
        return None if known is None else tokens.get(known)

    def _update(self, token_ids: Set[str]) -> None:
        """Compute the HMACs of new tokens only: a client may present unknown HMACs in a loop."""
        for token_id in self._hmacs.keys() - token_ids:
            del self._ids[self._hmacs.pop(token_id)]
        for token_id in token_ids - self._hmacs.keys():
            code = self._hmacs[token_id] = self.of(token_id)
            self._ids[code] = token_id

    def __repr__(self) -> str:
        return "TokenPasswords([hidden])"
