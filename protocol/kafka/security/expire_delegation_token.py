"""ExpireDelegationToken (40)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.security.delegation_tokens import ExpireDelegationTokenRequest

decode_request, encode_response, encode_error = served(ExpireDelegationTokenRequest)
