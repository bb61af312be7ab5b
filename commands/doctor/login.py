"""The SASL login of the doctor: the mechanism, the exchange, and what to check when the broker refuses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.clients.errors import AuthenticationError
from barnabas.clients.security.authentication import ensure_mechanism, refused_login
from barnabas.clients.security.login import begin_login
from barnabas.clients.security.settings import OAuthClient, Password, SecuritySettings
from barnabas.commands.doctor.steps import NoAnswerError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.sasl.exchange import SaslError
from barnabas.protocol.sasl.plain import PLAIN

if TYPE_CHECKING:
    from barnabas.commands.doctor.conversation import Conversation


def agree_on_mechanism(conversation: Conversation, security: SecuritySettings, peer: str) -> list[str]:
    """Exchange SaslHandshake; return the mechanisms that the listener offers. Raises NoAnswerError, DecodeError."""
    assert security.mechanism is not None, "the settings have a mechanism"
    answer = conversation.sasl_handshake(security.mechanism)
    try:
        ensure_mechanism(security, answer, peer)
    except AuthenticationError as error:
        raise NoAnswerError(f"but {error}") from None
    return sorted(answer.mechanisms)


def log_in(conversation: Conversation, security: SecuritySettings, peer: str) -> str:
    """Log in; return the user and the session's lifetime in words. Raises NoAnswerError, DecodeError."""
    mechanism = security.mechanism
    assert mechanism is not None, "the settings have a mechanism"
    lifetime_ms = 0
    try:
        client = begin_login(security)
        message: bytes | None = client.start()
        while message is not None:
            answer = conversation.sasl_authenticate(message)
            if answer.error is not ErrorCode.NONE:
                refusal = refused_login(peer, mechanism, (answer.message or answer.error.name).rstrip("."))
                raise NoAnswerError(f"but {refusal}. {_remedy(security)}")
            message = client.respond(answer.auth_bytes)
            lifetime_ms = answer.session_lifetime_ms
    except AuthenticationError as error:
        raise NoAnswerError(f"but {error}") from None
    except SaslError as error:
        raise NoAnswerError(f"but the {mechanism} login fails: {error}. {_remedy(security)}") from None
    if not client.is_complete:
        raise NoAnswerError(f"but {refused_login(peer, mechanism, 'the broker ended the login early')}")
    session = f"; the session lasts {lifetime_ms / 1000:g} s" if lifetime_ms else ""
    return f"logged in {_identity(security)} with {mechanism}{session}"


def _identity(security: SecuritySettings) -> str:
    match security.login:
        case Password(user=user, is_token=True):
            return f"by the delegation token {user}"
        case Password(user=user):
            return f"as {user}"
    return "by an access token"


def _remedy(security: SecuritySettings) -> str:
    match security.login:
        case OAuthClient():
            return "Check the token's expiry, issuer, audience and scope against the listener's sasl.oauthbearer.*"
        case Password(is_token=True):
            return "Check the token's id and HMAC in sasl.jaas.config, and whether it expired (kafka-delegation-tokens)"
    where = (
        "the user_<name> options of the listener's plain.sasl.jaas.config are the users"
        if security.mechanism == PLAIN
        else "`barnabas user list` lists the users and their mechanisms"
    )
    return f"Check username and password in sasl.jaas.config; {where}"
