"""DeleteGroups (42)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.groups.groups import DeleteGroupsRequest

decode_request, encode_response, encode_error = served(DeleteGroupsRequest)
