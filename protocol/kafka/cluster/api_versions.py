"""ApiVersions (18)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.cluster.api_versions import ApiVersionsRequest

decode_request, encode_response, encode_error = served(ApiVersionsRequest)
