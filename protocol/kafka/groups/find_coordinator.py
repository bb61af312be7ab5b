"""FindCoordinator (10)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.groups.find_coordinator import FindCoordinatorRequest

decode_request, encode_response, encode_error = served(FindCoordinatorRequest)
