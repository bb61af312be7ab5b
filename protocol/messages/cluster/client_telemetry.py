"""GetTelemetrySubscriptions (71) and PushTelemetry (72): metrics that clients push to the broker (KIP-714)."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.uuids import ZERO_UUID
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Bool, Bytes, Error, Int8, Int32, String, Uuid


class GetTelemetrySubscriptionsResponse(Struct, flexible=0):
    """What a client shall push, and how often. `metrics`: prefixes of names, ["*"] for all, none for no metrics."""

    throttle_ms: Int32 = 0
    error: Error = ErrorCode.NONE
    client_instance_id: Uuid = ZERO_UUID
    subscription_id: Int32 = 0
    compression_types: Sequence[Int8] = ()
    push_interval_ms: Int32 = 0
    max_bytes: Int32 = 0
    delta_temporality: Bool = False
    metrics: Sequence[String] = ()


class GetTelemetrySubscriptionsRequest(
    Request[GetTelemetrySubscriptionsResponse], api=ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, flexible=0
):
    """`client_instance_id` is ZERO_UUID in a client's first request."""

    client_instance_id: Uuid

    def refused(self, code: ErrorCode, message: str) -> GetTelemetrySubscriptionsResponse:
        """The code; the answer has no message."""
        return GetTelemetrySubscriptionsResponse(error=code)


class PushTelemetryResponse(Struct, flexible=0):
    """The outcome."""

    throttle_ms: Int32 = 0
    error: Error = ErrorCode.NONE


class PushTelemetryRequest(Request[PushTelemetryResponse], api=ApiKey.PUSH_TELEMETRY, flexible=0):
    """`metrics` is a compressed MetricsData message of OpenTelemetry."""

    client_instance_id: Uuid
    subscription_id: Int32
    terminating: Bool
    compression_type: Int8
    metrics: Bytes

    def refused(self, code: ErrorCode, message: str) -> PushTelemetryResponse:
        """The code; the answer has no message."""
        return PushTelemetryResponse(error=code)
