"""RenewDelegationToken (39)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.security.delegation_tokens import RenewDelegationTokenRequest

decode_request, encode_response, encode_error = served(RenewDelegationTokenRequest)
