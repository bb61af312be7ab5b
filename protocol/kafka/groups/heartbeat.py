"""Heartbeat (12)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.groups.heartbeat import HeartbeatRequest

decode_request, encode_response, encode_error = served(HeartbeatRequest)
