"""OffsetForLeaderEpoch (23)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.data.offset_for_leader_epoch import OffsetForLeaderEpochRequest

decode_request, encode_response, encode_error = served(OffsetForLeaderEpochRequest)
