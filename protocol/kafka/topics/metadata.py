"""Metadata (3)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.topics.metadata import MetadataRequest

decode_request, encode_response, encode_error = served(MetadataRequest)
