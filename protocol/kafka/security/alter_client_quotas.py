"""AlterClientQuotas (49)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.security.client_quotas import AlterClientQuotasRequest

decode_request, encode_response, encode_error = served(AlterClientQuotasRequest)
