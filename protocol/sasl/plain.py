"""PLAIN (RFC 4616), both sides: one message `[authzid] NUL user NUL password`, in UTF-8.

The texts of failures are Kafka's; clients show them. Source: Kafka's PlainSaslServer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from barnabas.protocol.sasl.exchange import Failure, SaslError, Step, Success

PLAIN: Final = "PLAIN"

_TOKENS: Final = 3
_OTHER_IDENTITY: Final = "Authentication failed: Client requested an authorization id that is different from username"


class PlainServer:
    """The server side. `verify(user, password)` returns whether the password is the user's."""

    def __init__(self, verify: Callable[[str, str], bool]) -> None:
        self._verify = verify

    def respond(self, data: bytes) -> Step:
        """Check the only message."""
        tokens = data.decode(errors="replace").split("\0", _TOKENS)
        if len(tokens) != _TOKENS:
            text = f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(tokens)}"
            return Failure("the PLAIN message is malformed", text)
        identity, user, password = tokens
        if not user:
            return Failure("the user name is empty", "Authentication failed: username not specified")
        if not password:
            return Failure("the password is empty", "Authentication failed: password not specified", user)
        if not self._verify(user, password):
            return Failure("wrong user or password", "Authentication failed: Invalid username or password", user)
        if identity not in ("", user):
            return Failure("the authorization id is not the user", _OTHER_IDENTITY, user)
        return Success(b"", user)

    def resume(self, result: Any) -> Step:
        """Not used: no step needs Work."""
        raise NotImplementedError


class PlainClient:
    """The client side."""

    def __init__(self, user: str, password: str) -> None:
        """Raises SaslError for a name or password that PLAIN cannot transport."""
        if not user or "\0" in user or "\0" in password:
            raise SaslError("PLAIN needs a user name, and neither it nor the password may contain a NUL character")
        self._message = f"\0{user}\0{password}".encode()
        self.is_complete = False

    def start(self) -> bytes:
        """Return the only message."""
        return self._message

    def respond(self, data: bytes) -> bytes | None:
        """Take the server's empty answer."""
        self.is_complete = True
        return None
