"""ListOffsets (2)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.data.list_offsets import ListOffsetsRequest

decode_request, encode_response, encode_error = served(ListOffsetsRequest)
