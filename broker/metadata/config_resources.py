"""What configs may belong to: topics and brokers here, a few things more in Kafka."""

from __future__ import annotations

from barnabas.protocol.errors import BrokerError, ErrorCode

_UNSERVED = {8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP"}
"""Kafka's other types of config resources."""


def unserved_resource_type(resource_type: int) -> BrokerError:
    """The refusal of configs of anything but a topic or a broker."""
    name = _UNSERVED.get(resource_type)
    if name is None:
        return BrokerError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")
    message = f"Barnabas has no configs of resource type {name} ({resource_type}): only of TOPIC (2) and BROKER (4)."
    return BrokerError(ErrorCode.INVALID_REQUEST, message)
