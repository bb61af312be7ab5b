"""DeleteTopics (20)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.topics.topics import DeleteTopicsRequest

decode_request, encode_response, encode_error = served(DeleteTopicsRequest)
