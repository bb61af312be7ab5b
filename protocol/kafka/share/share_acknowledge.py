"""ShareAcknowledge (79)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.share.share_acknowledge import ShareAcknowledgeRequest

decode_request, encode_response, encode_error = served(ShareAcknowledgeRequest)
