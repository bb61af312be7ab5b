"""SyncGroup (14)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.groups.sync_group import SyncGroupRequest

decode_request, encode_response, encode_error = served(SyncGroupRequest)
