"""DeleteAcls (31)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.security.acls import DeleteAclsRequest

decode_request, encode_response, encode_error = served(DeleteAclsRequest)
