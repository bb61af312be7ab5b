"""The client side of one login, by the settings."""

from __future__ import annotations

from barnabas.clients.errors import AuthenticationError
from barnabas.clients.security.access_tokens import access_token
from barnabas.clients.security.settings import OAuthClient, Password, SecuritySettings
from barnabas.protocol.sasl.exchange import SaslClient, SaslError
from barnabas.protocol.sasl.oauthbearer import OAuthBearerClient
from barnabas.protocol.sasl.plain import PLAIN, PlainClient
from barnabas.protocol.sasl.scram_client import ScramClient
from barnabas.protocol.sasl.scram_keys import SCRAM_MECHANISMS


def begin_login(settings: SecuritySettings) -> SaslClient:
    """Return the client side of an exchange. Blocks for an OAuth token. Raises AuthenticationError."""
    login, mechanism = settings.login, settings.mechanism
    assert mechanism is not None, "the settings have a mechanism"
    try:
        match login:
            case OAuthClient():
                return OAuthBearerClient(access_token(login))
            case Password() if mechanism == PLAIN:
                return PlainClient(login.user, login.password.reveal())
            case Password():
                return ScramClient(
                    SCRAM_MECHANISMS[mechanism], login.user, login.password.reveal(), is_token=login.is_token
                )
    except SaslError as error:
        raise AuthenticationError(f"{mechanism} login: {error}") from None
    raise AssertionError("a mechanism has a login")
