"""ListGroups (16)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.groups.groups import ListGroupsRequest

decode_request, encode_response, encode_error = served(ListGroupsRequest)
