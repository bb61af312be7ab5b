"""OAUTHBEARER on a listener, from its properties."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.broker.security.oauth.keys import open_key_source
from barnabas.broker.security.oauth.validator import token_validator
from barnabas.broker.startup_error import StartupError
from barnabas.protocol.sasl.oauthbearer import OAUTHBEARER, OAuthBearerServer

if TYPE_CHECKING:
    from barnabas.config.security.listener_view import ListenerView

logger = logging.getLogger(__name__)

_URL = "sasl.oauthbearer.jwks.endpoint.url"
_ISSUER = "sasl.oauthbearer.expected.issuer"
_AUDIENCE = "sasl.oauthbearer.expected.audience"


def begin_oauthbearer(properties: ListenerView) -> Callable[[], OAuthBearerServer]:
    """Return what begins an exchange on the listener. Raises StartupError."""

    def number(name: str) -> int:
        return properties.get_int(name, mechanism=OAUTHBEARER)

    try:
        keys = open_key_source(
            properties.get_str(_URL, mechanism=OAUTHBEARER) or "",
            refresh_ms=number("sasl.oauthbearer.jwks.endpoint.refresh.ms"),
            backoff_ms=number("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"),
            max_backoff_ms=number("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"),
            now=time.monotonic,
        )
    except ValueError as error:
        setting = properties.setting(_URL, mechanism=OAUTHBEARER)
        raise StartupError(f"{setting}: OAUTHBEARER needs the signing keys of an identity provider: {error}") from None
    validator = token_validator(properties, OAUTHBEARER, keys)
    bounds = {
        _ISSUER: properties.get_str(_ISSUER, mechanism=OAUTHBEARER),
        _AUDIENCE: properties.get_list(_AUDIENCE, mechanism=OAUTHBEARER),
    }
    unset = [name for name, value in bounds.items() if not value]
    if unset:
        logger.warning(
            "listener %s accepts tokens that the identity provider issued for other services: %s not set",
            properties.listener,
            " and ".join(unset),
        )
    return lambda: OAuthBearerServer(validator.validate)
