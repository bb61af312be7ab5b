"""A client that pushes metrics (KIP-714), on the wire."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

from barnabas.protocol.errors import ErrorCode
from tests.support.kafka.kafka_wire import KafkaWire, schema

CLIENT_METRICS, SET, DELETE = 16, 0, 1


def field(number: int, data: bytes) -> bytes:
    """A field of bytes in a message of Protocol Buffers."""
    size = len(data)
    return bytes([number << 3 | 2, *([size & 0x7F | 0x80, size >> 7] if size > 0x7F else [size])]) + data


def gauge(name: str, value: float, **attributes: str) -> bytes:
    """A gauge with one point."""
    pairs = b"".join(
        field(7, field(1, key.encode()) + field(2, field(1, text.encode()))) for key, text in attributes.items()
    )
    return field(1, name.encode()) + field(5, field(1, pairs + b"\x21" + struct.pack("<d", value)))


def delta(name: str, value: int) -> bytes:
    """A sum since the push before, with one point."""
    return field(1, name.encode()) + field(7, field(1, b"\x31" + struct.pack("<q", value)) + b"\x10\x01\x18\x01")


def metrics_data(*metrics: bytes) -> bytes:
    """OpenTelemetry's message of these metrics."""
    return field(1, field(2, b"".join(field(2, each) for each in metrics)))


def subscribe(kafka: KafkaWire, name: str, **configs: str | None) -> None:
    """Set configs of a subscription, or delete those that are None."""
    kinds = schema("incremental_alter_configs", 1, "request")
    rows = tuple(
        kinds.AlterableConfig(name=key.replace("_", "."), config_operation=DELETE if text is None else SET, value=text)
        for key, text in configs.items()
    )
    resource = kinds.AlterConfigsResource(resource_type=CLIENT_METRICS, resource_name=name, configs=rows)
    (result,) = kafka.call("incremental_alter_configs", 1, resources=(resource,), validate_only=False).responses
    assert result.error_code == ErrorCode.NONE, result.error_message


def ask(kafka: KafkaWire, instance: UUID | None = None) -> Any:
    """Ask for the subscription, as a client does first."""
    return kafka.call("get_telemetry_subscriptions", 0, client_instance_id=instance)


def push(
    kafka: KafkaWire,
    asked: Any,
    data: bytes,
    *,
    terminating: bool = False,
    subscription_id: int | None = None,
    compression_type: int = 0,
) -> int:
    """Push metrics; return the error code."""
    answer = kafka.call(
        "push_telemetry",
        0,
        client_instance_id=asked.client_instance_id,
        subscription_id=asked.subscription_id if subscription_id is None else subscription_id,
        terminating=terminating,
        compression_type=compression_type,
        metrics=data,
    )
    return int(answer.error_code)
