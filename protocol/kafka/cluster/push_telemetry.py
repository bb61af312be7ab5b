"""PushTelemetry (72)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.cluster.client_telemetry import PushTelemetryRequest

decode_request, encode_response, encode_error = served(PushTelemetryRequest)
