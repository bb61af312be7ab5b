"""Standby (10001), an API of Barnabas."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.cluster.standby import StandbyRequest

decode_request, encode_response, encode_error = served(StandbyRequest)
