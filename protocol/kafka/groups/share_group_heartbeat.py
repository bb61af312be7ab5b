"""ShareGroupHeartbeat (76)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.groups.share_group_heartbeat import ShareGroupHeartbeatRequest

decode_request, encode_response, encode_error = served(ShareGroupHeartbeatRequest)
