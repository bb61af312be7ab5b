"""SaslHandshake (key 17) and SaslAuthenticate (key 36): a client authenticates before its first other request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode


@dataclass(slots=True)
class SaslHandshakeRequest:
    """The mechanism that the client chose."""

    mechanism: str


@dataclass(slots=True)
class SaslHandshakeResponse:
    """`mechanisms`: those that the listener has enabled."""

    error: ErrorCode = ErrorCode.NONE
    mechanisms: Sequence[str] = ()


@dataclass(slots=True)
class SaslAuthenticateRequest:
    """One message of the mechanism."""

    auth_bytes: bytes

    def __repr__(self) -> str:
        return "SaslAuthenticateRequest([hidden])"


@dataclass(slots=True)
class SaslAuthenticateResponse:
    """The server's message.

    `session_lifetime_ms`: re-authenticate within that time; 0: no limit, or not authenticated yet. `message` is empty
    without an error, as in Kafka.
    """

    auth_bytes: bytes = b""
    session_lifetime_ms: int = 0
    error: ErrorCode = ErrorCode.NONE
    message: str | None = ""
