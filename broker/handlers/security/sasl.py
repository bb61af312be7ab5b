"""SaslHandshake (key 17) and SaslAuthenticate (key 36) outside of an authentication: ILLEGAL_SASL_STATE, as in Kafka.

On a SASL listener broker/security/sasl/gate.py serves both. These handlers see only those requests that come over a
listener without SASL, after the authentication, or for a re-authentication that the session does not need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.security.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.network.session import Session

_TOO_LATE: Final = "SaslAuthenticate request received after successful authentication"
"""Kafka's text."""


def sasl_handshake(session: Session, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """Refuse a SaslHandshake request."""
    return SaslHandshakeResponse(error=ErrorCode.ILLEGAL_SASL_STATE)


def sasl_authenticate(session: Session, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    """Refuse a SaslAuthenticate request."""
    return SaslAuthenticateResponse(error=ErrorCode.ILLEGAL_SASL_STATE, message=_TOO_LATE)
