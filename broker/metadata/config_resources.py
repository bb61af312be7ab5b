"""Resources that have configs in the metadata log, and the length limit of texts."""

from __future__ import annotations

from barnabas.broker.metadata.image import MetadataImage
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.topic_name import validate_topic_name

MAX_TEXT_BYTES = 2**15 - 1
"""Of a name or a value in UTF-8. Kafka does not start on a log with a longer string."""


def ensure_topic(image: MetadataImage, name: str) -> None:
    """Raise BrokerError INVALID_TOPIC_EXCEPTION for an illegal name, else UNKNOWN_TOPIC_OR_PARTITION."""
    if name not in image.topics:
        validate_topic_name(name)
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic '{name}' does not exist")


def ensure_group_named(group_id: str) -> None:
    """Raise BrokerError INVALID_REQUEST for an empty name: groups have no common default. The group need not exist."""
    if not group_id:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    if len(group_id.encode()) > MAX_TEXT_BYTES:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"The name of the group is longer than {MAX_TEXT_BYTES} bytes.")


def ensure_subscription_named(name: str) -> None:
    """Raise BrokerError INVALID_REQUEST for an empty name of a subscription of client metrics, or a very long one."""
    if not name:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    if len(name.encode()) > MAX_TEXT_BYTES:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST, f"The name of a subscription is longer than {MAX_TEXT_BYTES} bytes."
        )


def ensure_texts_fit(name: str, value: str) -> None:
    """Raise BrokerError INVALID_CONFIG for a name or a value above MAX_TEXT_BYTES."""
    if len(name.encode()) > MAX_TEXT_BYTES:
        raise BrokerError(ErrorCode.INVALID_CONFIG, f"The name of a config is longer than {MAX_TEXT_BYTES} bytes.")
    if len(value.encode()) > MAX_TEXT_BYTES:
        message = f"{name}: the value exceeds the maximum value size of {MAX_TEXT_BYTES} bytes."
        raise BrokerError(ErrorCode.INVALID_CONFIG, message)


def unknown_resource_type(resource_type: int) -> BrokerError:
    """Return the error for a resource that has no configs in the metadata log."""
    return BrokerError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")
