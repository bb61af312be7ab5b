"""Logins over a connection: the first one, and those that renew a session before it ends (KIP-368)."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from barnabas.clients.errors import AuthenticationError
from barnabas.clients.security.login import begin_login
from barnabas.clients.security.settings import SecuritySettings
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.security.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from barnabas.protocol.sasl.exchange import SaslError


class Ask(Protocol):
    """Sends one request of an authentication and returns its answer."""

    async def __call__(self, request: Any) -> Any:
        """Raises BrokerConnectionError."""
        ...


async def authenticate(settings: SecuritySettings, ask: Ask, peer: str) -> int:
    """Log in; return the session's lifetime in ms, 0 without a limit.

    Raises AuthenticationError with the broker's sentence and what to check.
    """
    mechanism = settings.mechanism
    assert mechanism is not None, "the settings have a mechanism"
    client = await asyncio.to_thread(begin_login, settings)
    handshake: SaslHandshakeResponse = await ask(SaslHandshakeRequest(mechanism=mechanism))
    ensure_mechanism(settings, handshake, peer)
    message: bytes | None = client.start()
    while message is not None:
        answer: SaslAuthenticateResponse = await ask(SaslAuthenticateRequest(auth_bytes=message))
        if answer.error is not ErrorCode.NONE:
            raise refused_login(peer, mechanism, answer.message or answer.error.name)
        try:
            # Deriving SCRAM's keys takes milliseconds.
            message = await asyncio.to_thread(client.respond, answer.auth_bytes)
        except SaslError as error:
            raise AuthenticationError(f"{mechanism} login at {peer}: {error}") from None
    if not client.is_complete:
        raise refused_login(peer, mechanism, "the broker ended the login early")
    return answer.session_lifetime_ms


def ensure_mechanism(settings: SecuritySettings, handshake: SaslHandshakeResponse, peer: str) -> None:
    """Raise AuthenticationError if the broker refuses the mechanism of the settings."""
    mechanism = settings.mechanism
    assert mechanism is not None, "the settings have a mechanism"
    if handshake.error is ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        raise AuthenticationError(
            f"{peer} does not take sasl.mechanism={mechanism}; it takes {', '.join(sorted(handshake.mechanisms))}"
        )
    if handshake.error is ErrorCode.ILLEGAL_SASL_STATE:
        raise AuthenticationError(
            f"{peer} does not authenticate by SASL; set security.protocol to {_without_sasl(settings)}"
        )
    if handshake.error is not ErrorCode.NONE:
        raise refused_login(peer, mechanism, handshake.error.name)


def refused_login(peer: str, mechanism: str, reason: str) -> AuthenticationError:
    """Return the error of a login that the broker refused."""
    return AuthenticationError(f"{peer} refuses the {mechanism} login: {reason}")


def _without_sasl(settings: SecuritySettings) -> str:
    return settings.protocol.removeprefix("SASL_")
