"""What configs may belong to (topics, brokers and groups; two things more in Kafka), and how long a value may be."""

from __future__ import annotations

from barnabas.broker.metadata.image import MetadataImage
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.topic_name import validate_topic_name

_UNSERVED = {8: "BROKER_LOGGER", 16: "CLIENT_METRICS"}
"""Kafka's other types of config resources."""

MAX_VALUE_BYTES = 2**15 - 1
"""Of a value in UTF-8, as in Kafka: a classic message of its protocol cannot tell more."""


def ensure_topic(image: MetadataImage, name: str) -> None:
    """Raises BrokerError: INVALID_TOPIC_EXCEPTION for a name that no topic can have, or UNKNOWN_TOPIC_OR_PARTITION."""
    if name not in image.topics:
        validate_topic_name(name)
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic '{name}' does not exist")


def ensure_group_named(group_id: str) -> None:
    """Raises BrokerError INVALID_REQUEST: there is no default of all groups. The group itself need not be there."""
    if not group_id:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")


def ensure_value_fits(name: str, value: str) -> None:
    """Raises BrokerError INVALID_CONFIG for a value that is too long to be told again."""
    if len(value.encode()) > MAX_VALUE_BYTES:
        message = f"{name}: the value exceeds the maximum value size of {MAX_VALUE_BYTES} bytes."
        raise BrokerError(ErrorCode.INVALID_CONFIG, message)


def unserved_resource_type(resource_type: int) -> BrokerError:
    """The refusal of configs of anything but a topic, a broker or a group."""
    name = _UNSERVED.get(resource_type)
    if name is None:
        return BrokerError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")
    served = "only of TOPIC (2), BROKER (4) and GROUP (32)"
    message = f"Barnabas has no configs of resource type {name} ({resource_type}): {served}."
    return BrokerError(ErrorCode.INVALID_REQUEST, message)
