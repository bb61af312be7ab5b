"""ElectLeaders (43)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.topics.elect_leaders import ElectLeadersRequest

decode_request, encode_response, encode_error = served(ElectLeadersRequest)
