"""CreateAcls (30)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.security.acls import CreateAclsRequest

decode_request, encode_response, encode_error = served(CreateAclsRequest)
