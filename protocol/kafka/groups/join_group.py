"""JoinGroup (11)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.groups.join_group import JoinGroupRequest

decode_request, encode_response, encode_error = served(JoinGroupRequest)
