"""StreamsGroupHeartbeat (88)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.groups.streams_group_heartbeat import StreamsGroupHeartbeatRequest

decode_request, encode_response, encode_error = served(StreamsGroupHeartbeatRequest)
