"""CreateTopics (19)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.topics.topics import CreateTopicsRequest

decode_request, encode_response, encode_error = served(CreateTopicsRequest)
