"""SaslHandshake (17), version 1, and SaslAuthenticate (36), versions 1-2: a login."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

SASL_HANDSHAKE: Final = ClientApi(ApiKey.SASL_HANDSHAKE, 1, 1, SaslHandshakeRequest, SaslHandshakeResponse)
SASL_AUTHENTICATE: Final = ClientApi(ApiKey.SASL_AUTHENTICATE, 1, 2, SaslAuthenticateRequest, SaslAuthenticateResponse)
