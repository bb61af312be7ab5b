"""InitializeShareGroupState (83)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.share.group_state import InitializeShareGroupStateRequest

decode_request, encode_response, encode_error = served(InitializeShareGroupStateRequest)
