"""SaslHandshake (17)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.security.sasl import SaslHandshakeRequest

decode_request, encode_response, encode_error = served(SaslHandshakeRequest)
