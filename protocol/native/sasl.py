"""sasl_handshake (17) and sasl_authenticate (36): a client's authentication on a listener that requires it.

handshake     request   mechanism str
              response  error, mechanisms [str]
authenticate  request   auth_bytes bin
              response  error, message str or nil, auth_bytes bin, session_lifetime_ms int
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.messages.security.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from barnabas.protocol.native.fields import INT64, array, binary, error_code, field, integer, long_text, text


def encode_handshake(request: SaslHandshakeRequest) -> dict[str, Any]:
    """The body of a request."""
    return {"mechanism": request.mechanism}


def decode_handshake_response(body: dict[str, Any]) -> SaslHandshakeResponse:
    """Raises DecodeError, naming the field."""
    return SaslHandshakeResponse(
        error=error_code(field(body, "error"), "error"),
        mechanisms=[text(each, "mechanisms[]") for each in array(field(body, "mechanisms"), "mechanisms")],
    )


def encode_authenticate(request: SaslAuthenticateRequest) -> dict[str, Any]:
    """The body of a request."""
    return {"auth_bytes": request.auth_bytes}


def decode_authenticate_response(body: dict[str, Any]) -> SaslAuthenticateResponse:
    """Raises DecodeError, naming the field."""
    return SaslAuthenticateResponse(
        auth_bytes=binary(field(body, "auth_bytes"), "auth_bytes"),
        session_lifetime_ms=integer(field(body, "session_lifetime_ms"), "session_lifetime_ms", INT64),
        error=error_code(field(body, "error"), "error"),
        message=long_text(field(body, "message", None), "message") or "",
    )
