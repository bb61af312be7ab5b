"""PushTelemetry (72), version 0: metrics of a client."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import BOOL, BYTES, INT8, INT16, INT32, NO_THROTTLE, UUID, Message
from barnabas.protocol.messages.cluster.client_telemetry import PushTelemetryRequest, PushTelemetryResponse

REQUEST = Message(
    0,
    PushTelemetryRequest,
    client_instance_id=UUID,
    subscription_id=INT32,
    terminating=BOOL,
    compression_type=INT8,
    metrics=BYTES,
)
RESPONSE = Message(0, throttle_ms=NO_THROTTLE, error=INT16)

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: Any, code: ErrorCode, message: str) -> bytes:
    """A refusal; it has no message."""
    return RESPONSE.write(version, PushTelemetryResponse(code))
