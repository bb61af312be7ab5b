"""GetTelemetrySubscriptions (71)."""

from __future__ import annotations

from barnabas.protocol.kafka.declared import served
from barnabas.protocol.messages.cluster.client_telemetry import GetTelemetrySubscriptionsRequest

decode_request, encode_response, encode_error = served(GetTelemetrySubscriptionsRequest)
