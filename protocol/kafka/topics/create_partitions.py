"""CreatePartitions (37)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.topics.topics import CreatePartitionsRequest

decode_request, encode_response, encode_error = served(CreatePartitionsRequest)
