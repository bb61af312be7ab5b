"""GetTelemetrySubscriptions (71), version 0: which metrics a client shall push, and how often."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import BOOL, INT8, INT16, INT32, NO_THROTTLE, STRING, UUID, Array, Message
from barnabas.protocol.messages.cluster.client_telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)

REQUEST = Message(0, GetTelemetrySubscriptionsRequest, client_instance_id=UUID)
RESPONSE = Message(
    0,
    throttle_ms=NO_THROTTLE,
    error=INT16,
    client_instance_id=UUID,
    subscription_id=INT32,
    compression_types=Array(INT8),
    push_interval_ms=INT32,
    max_bytes=INT32,
    delta_temporality=BOOL,
    metrics=Array(STRING),
)

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: Any, code: ErrorCode, message: str) -> bytes:
    """A refusal; it has no message."""
    return RESPONSE.write(version, GetTelemetrySubscriptionsResponse(error=code))
