"""What configs may belong to (topics, brokers and groups; two things more in Kafka), and how long texts may be."""

from __future__ import annotations

from barnabas.broker.metadata.image import MetadataImage
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.topic_name import validate_topic_name

_UNSERVED = {8: "BROKER_LOGGER", 16: "CLIENT_METRICS"}
"""Kafka's other types of config resources."""

MAX_TEXT_BYTES = 2**15 - 1
"""Of a value or a name in UTF-8. Apache Kafka reads no longer string: a record with one would keep it from starting."""


def ensure_topic(image: MetadataImage, name: str) -> None:
    """Raises BrokerError: INVALID_TOPIC_EXCEPTION for a name that no topic can have, or UNKNOWN_TOPIC_OR_PARTITION."""
    if name not in image.topics:
        validate_topic_name(name)
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic '{name}' does not exist")


def ensure_group_named(group_id: str) -> None:
    """Raises BrokerError INVALID_REQUEST: there is no default of all groups. The group itself need not be there."""
    if not group_id:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    if len(group_id.encode()) > MAX_TEXT_BYTES:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"The name of the group is longer than {MAX_TEXT_BYTES} bytes.")


def ensure_texts_fit(name: str, value: str) -> None:
    """Raises BrokerError INVALID_CONFIG for a name or a value that is too long to be told again."""
    if len(name.encode()) > MAX_TEXT_BYTES:
        raise BrokerError(ErrorCode.INVALID_CONFIG, f"The name of a config is longer than {MAX_TEXT_BYTES} bytes.")
    if len(value.encode()) > MAX_TEXT_BYTES:
        message = f"{name}: the value exceeds the maximum value size of {MAX_TEXT_BYTES} bytes."
        raise BrokerError(ErrorCode.INVALID_CONFIG, message)


def unserved_resource_type(resource_type: int) -> BrokerError:
    """The refusal of configs of anything but a topic, a broker or a group."""
    name = _UNSERVED.get(resource_type)
    if name is None:
        return BrokerError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")
    served = "only of TOPIC (2), BROKER (4) and GROUP (32)"
    message = f"Barnabas has no configs of resource type {name} ({resource_type}): {served}."
    return BrokerError(ErrorCode.INVALID_REQUEST, message)
