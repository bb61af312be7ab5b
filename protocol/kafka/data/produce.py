"""Produce (0)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.data.produce import ProduceRequest

decode_request, encode_response, encode_error = served(ProduceRequest)
