"""OffsetDelete (47)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.groups.offset_delete import OffsetDeleteRequest

decode_request, encode_response, encode_error = served(OffsetDeleteRequest)
