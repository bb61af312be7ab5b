"""IncrementalAlterConfigs (44)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.cluster.configs import IncrementalAlterConfigsRequest

decode_request, encode_response, encode_error = served(IncrementalAlterConfigsRequest)
