"""InitProducerId (22)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdRequest

decode_request, encode_response, encode_error = served(InitProducerIdRequest)
