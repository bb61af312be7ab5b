"""ReadShareGroupState (84)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.share.group_state import ReadShareGroupStateRequest

decode_request, encode_response, encode_error = served(ReadShareGroupStateRequest)
