"""The client side of SCRAM. It verifies the server's signature: only a server that has the user's keys can make it.

Source: Kafka's ScramSaslClient.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from typing import Final

from barnabas.protocol.sasl.exchange import SaslError
from barnabas.protocol.sasl.scram_keys import (
    MIN_ITERATIONS,
    ScramMechanism,
    client_key,
    salted_password,
    server_key,
    stored_key,
    xor,
)
from barnabas.protocol.sasl.scram_messages import (
    GS2_HEADER,
    client_final,
    client_final_unproved,
    client_first_bare,
    read_server_final,
    read_server_first,
)

MAX_CLIENT_ITERATIONS: Final = 1_000_000
"""Half a second of PBKDF2: a server cannot keep a client computing for hours."""

_NONCE_BYTES: Final = 18


class ScramClient:
    """One exchange. `is_token`: `user` is the id of a delegation token, and `password` its HMAC in base64."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        user: str,
        password: str,
        *,
        is_token: bool = False,
        nonce: str | None = None,
        derive: Callable[[ScramMechanism, str, bytes, int], bytes] = salted_password,
    ) -> None:
        """`nonce` None: random. `derive` may cache keys. Raises SaslError for a name that SCRAM cannot transport."""
        self._mechanism = mechanism
        self._password = password
        self._derive = derive
        self._nonce = secrets.token_urlsafe(_NONCE_BYTES) if nonce is None else nonce
        self._bare = client_first_bare(user, self._nonce, is_token=is_token)
        self._signature: bytes | None = None
        self.is_complete = False

    def start(self) -> bytes:
        """Return the client-first message."""
        return f"{GS2_HEADER}{self._bare}".encode()

    def respond(self, data: bytes) -> bytes | None:
        """Answer server-first with the proof; verify server-final. Takes milliseconds. Raises SaslError."""
        if self._signature is None:
            return self._prove(data)
        if not hmac.compare_digest(read_server_final(data), self._signature):
            raise SaslError("the server's SCRAM signature is wrong: it does not have this user's keys")
        self.is_complete = True
        return None

    def _prove(self, data: bytes) -> bytes:
        mechanism = self._mechanism
        first = read_server_first(data)
        if not first.nonce.startswith(self._nonce) or len(first.nonce) == len(self._nonce):
            raise SaslError("the server's SCRAM nonce does not extend the client's")
        if not MIN_ITERATIONS <= first.iterations <= MAX_CLIENT_ITERATIONS:
            raise SaslError(
                f"the server requests {first.iterations} iterations of {mechanism.name}; "
                f"{MIN_ITERATIONS} to {MAX_CLIENT_ITERATIONS} are accepted"
            )
        salted = self._derive(mechanism, self._password, first.salt, first.iterations)
        unproved = client_final_unproved(first.nonce)
        signed = b",".join([self._bare.encode(), data, unproved.encode()])
        key = client_key(mechanism, salted)
        proof = xor(key, hmac.digest(stored_key(mechanism, key), signed, mechanism.digest))
        self._signature = hmac.digest(server_key(mechanism, salted), signed, mechanism.digest)
        return client_final(unproved, proof)
