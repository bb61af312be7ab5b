"""SaslHandshake (17), version 1, and SaslAuthenticate (36), versions 1-2: a login."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.kafka.client.fields import ERROR
from barnabas.protocol.kafka.schema import BYTES, INT64, NULLABLE_STRING, STRING, Array, Message
from barnabas.protocol.kafka.security import sasl_authenticate, sasl_handshake
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.sasl import SaslAuthenticateResponse, SaslHandshakeResponse

_NEVER_FLEXIBLE: Final = 2

SASL_HANDSHAKE: Final = ClientApi(
    ApiKey.SASL_HANDSHAKE,
    1,
    1,
    sasl_handshake.REQUEST,
    Message(_NEVER_FLEXIBLE, SaslHandshakeResponse, error=ERROR, mechanisms=Array(STRING)),
)
SASL_AUTHENTICATE: Final = ClientApi(
    ApiKey.SASL_AUTHENTICATE,
    1,
    2,
    sasl_authenticate.REQUEST,
    Message(
        2,
        SaslAuthenticateResponse,
        error=ERROR,
        message=NULLABLE_STRING,
        auth_bytes=BYTES,
        session_lifetime_ms=INT64,
    ),
)
