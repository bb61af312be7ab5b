"""GetTelemetrySubscriptions (71) and PushTelemetry (72): metrics that clients push to the broker (KIP-714)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.uuids import ZERO_UUID


@dataclass(slots=True)
class GetTelemetrySubscriptionsRequest:
    """`client_instance_id` is ZERO_UUID in a client's first request."""

    client_instance_id: bytes


@dataclass(slots=True)
class GetTelemetrySubscriptionsResponse:
    """What a client shall push, and how often. `metrics`: prefixes of names, ["*"] for all, none for no metrics."""

    client_instance_id: bytes = ZERO_UUID
    subscription_id: int = 0
    compression_types: Sequence[int] = ()
    push_interval_ms: int = 0
    max_bytes: int = 0
    delta_temporality: bool = False
    metrics: Sequence[str] = ()
    error: ErrorCode = ErrorCode.NONE


@dataclass(slots=True)
class PushTelemetryRequest:
    """`metrics` is a compressed MetricsData message of OpenTelemetry."""

    client_instance_id: bytes
    subscription_id: int
    terminating: bool
    compression_type: int
    metrics: bytes


@dataclass(slots=True)
class PushTelemetryResponse:
    """The outcome."""

    error: ErrorCode = ErrorCode.NONE
