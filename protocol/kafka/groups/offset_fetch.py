"""OffsetFetch (9)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.groups.offset_fetch import OffsetFetchRequest

decode_request, encode_response, encode_error = served(OffsetFetchRequest)
