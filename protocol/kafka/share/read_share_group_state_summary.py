"""ReadShareGroupStateSummary (87)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.share.group_state import ReadShareGroupStateSummaryRequest

decode_request, encode_response, encode_error = served(ReadShareGroupStateSummaryRequest)
