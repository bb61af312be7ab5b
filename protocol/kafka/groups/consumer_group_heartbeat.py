"""ConsumerGroupHeartbeat (68)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

decode_request, encode_response, encode_error = served(ConsumerGroupHeartbeatRequest)
