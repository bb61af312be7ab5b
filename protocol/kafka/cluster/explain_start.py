"""ExplainStart (10003), an API of Barnabas."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.cluster.explain_start import ExplainStartRequest

decode_request, encode_response, encode_error = served(ExplainStartRequest)
