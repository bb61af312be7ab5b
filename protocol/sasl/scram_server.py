"""The server side of SCRAM: two rounds, for users and for delegation tokens.

A user that does not exist goes through both rounds with made-up keys and fails like a wrong password. Kafka fails in
the first round, which reveals which users exist. Source: Kafka's ScramSaslServer.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

from barnabas.protocol.sasl.exchange import Challenge, Failure, SaslError, Step, Success, Work
from barnabas.protocol.sasl.scram_keys import MIN_ITERATIONS, SALT_BYTES, DerivedKeys, ScramKeys, ScramMechanism, xor
from barnabas.protocol.sasl.scram_messages import (
    ClientFirst,
    read_client_final,
    read_client_first,
    server_final,
    server_first,
)

_OTHER_IDENTITY: Final = "Authentication failed: Client requested an authorization id that is different from username"
_NONCE_BYTES: Final = 18


class TokenLogin(NamedTuple):
    """A delegation token that a client logs in with. `derive` computes its keys and may take milliseconds."""

    owner: str
    """Name of the user as whom the client is authenticated."""
    expires_at_ms: int
    derive: Callable[[], ScramKeys]


class ScramUsers(Protocol):
    """The credentials of one mechanism."""

    def keys(self, user: str) -> ScramKeys | None:
        """Return a user's keys; None: there is no such user."""
        ...

    def made_up(self, user: str) -> tuple[bytes, int]:
        """Return the salt and iterations of a user without keys: the same at every attempt, and in a user's form."""
        ...

    def token(self, token_id: str) -> TokenLogin | None:
        """Return a token's login; None: there is no such token, or it has expired."""
        ...


class ScramServer:
    """One exchange."""

    def __init__(
        self, mechanism: ScramMechanism, users: ScramUsers, secret: bytes, *, nonce: str | None = None
    ) -> None:
        """`secret` determines the salts of unknown tokens: one for the broker's lifetime. `nonce` None: random."""
        self._mechanism = mechanism
        self._users = users
        self._secret = secret
        self._first: ClientFirst | None = None
        self._token: TokenLogin | None = None
        self._keys: ScramKeys | None = None
        self._is_known = False
        self._nonce = secrets.token_urlsafe(_NONCE_BYTES) if nonce is None else nonce
        self._server_first = ""

    def respond(self, data: bytes) -> Step:
        """Answer the client's first message with the salt, its final message with the verdict."""
        try:
            return self._begin(data) if self._first is None else self._verify(self._first, data)
        except SaslError as error:
            return Failure(str(error), user=None if self._first is None else self._first.user)

    def resume(self, result: Any) -> Step:
        """Continue with a token's keys."""
        assert self._first is not None
        return self._offer(self._first, result)

    def _begin(self, data: bytes) -> Step:
        first = self._first = read_client_first(data)
        if first.identity not in ("", first.user):
            return Failure("the authorization id is not the user", _OTHER_IDENTITY, first.user)
        if first.is_token:
            token = self._token = self._users.token(first.user)
            return self._offer(first, None) if token is None else Work(token.derive)
        return self._offer(first, self._users.keys(first.user))

    def _offer(self, first: ClientFirst, keys: ScramKeys | None) -> Step:
        if keys is not None and keys.iterations < MIN_ITERATIONS:
            return Failure(f"the stored credential has fewer than {MIN_ITERATIONS} iterations", user=first.user)
        self._is_known = keys is not None
        self._keys = keys = keys or self._made_up(first)
        self._nonce = first.nonce + self._nonce
        self._server_first = server_first(self._nonce, keys.salt, keys.iterations)
        return Challenge(self._server_first.encode())

    def _verify(self, first: ClientFirst, data: bytes) -> Step:
        keys, mechanism = self._keys, self._mechanism
        if keys is None:
            return Failure("a message after the end of the exchange", user=first.user)
        self._keys = None
        final = read_client_final(data)
        signed = f"{first.bare},{self._server_first},{final.unproved}".encode()
        signature = hmac.digest(keys.stored_key, signed, mechanism.digest)
        if final.nonce != self._nonce:
            return Failure("the nonce of the SCRAM client-final message is another one", user=first.user)
        if len(final.proof) != len(signature):
            return Failure("the SCRAM proof has a wrong size", user=first.user)
        presented = hashlib.new(mechanism.digest, xor(final.proof, signature)).digest()
        if not hmac.compare_digest(presented, keys.stored_key) or not self._is_known:
            return Failure("wrong token or secret" if first.is_token else "wrong user or password", user=first.user)
        answer = server_final(hmac.digest(keys.server_key, signed, mechanism.digest))
        token = self._token
        if token is None:
            return Success(answer, first.user)
        return Success(answer, token.owner, token.expires_at_ms, token_authenticated=True)

    def _made_up(self, first: ClientFirst) -> DerivedKeys:
        """Return keys that no password has. The salt depends on the name only, as that of a token or user does."""
        if first.is_token:
            salt = hmac.digest(self._secret, f"{self._mechanism.name}:{first.user}".encode(), "sha256")[:SALT_BYTES]
            iterations = MIN_ITERATIONS
        else:
            salt, iterations = self._users.made_up(first.user)
        unknown = secrets.token_bytes(self._mechanism.digest_bytes)
        return DerivedKeys(salt, unknown, unknown, iterations)
