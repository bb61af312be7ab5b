"""LeaveGroup (13)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.groups.leave_group import LeaveGroupRequest

decode_request, encode_response, encode_error = served(LeaveGroupRequest)
