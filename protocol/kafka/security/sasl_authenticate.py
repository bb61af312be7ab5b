"""SaslAuthenticate (36)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.security.sasl import SaslAuthenticateRequest

decode_request, encode_response, encode_error = served(SaslAuthenticateRequest)
