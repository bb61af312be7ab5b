"""Barnabas: a log broker that keeps topics as Apache Kafka keeps them on disk, and its asyncio client.

    from barnabas import Producer, ProducerConfig

    async with Producer(ProducerConfig(bootstrap="127.0.0.1:9092")) as producer:
        metadata = await producer.send_and_wait("orders", b"value", key=b"key")

The public names load at first use, so that `barnabas serve` does not load the client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"  # the only place; setuptools reads it from here without importing the package

if TYPE_CHECKING:
    from barnabas.clients.admin.admin import (
        Admin,
        ClusterDescription,
        CreatedTopic,
        ListedOffset,
        PartitionDescription,
        TopicDescription,
    )
    from barnabas.clients.config import AdminConfig, ClientConfig, ConsumerConfig, ProducerConfig, ShareConsumerConfig
    from barnabas.clients.consumer.consumer import Consumer
    from barnabas.clients.consumer.rebalance_listener import RebalanceListener
    from barnabas.clients.errors import (
        AuthenticationError,
        BrokerConnectionError,
        BrokerTimeoutError,
        BufferFullError,
        ClientConfigError,
        ClientError,
        ClosedError,
        CommitFailedError,
        CorruptBatchError,
        DeliveryTimeoutError,
        LockLostError,
        OffsetOutOfRangeError,
        ProducerFencedError,
        ProtocolViolationError,
        RecordTooLargeError,
        RefusedError,
        TransactionAbortableError,
        TransactionAbortedError,
        UnknownTopicError,
    )
    from barnabas.clients.group_offsets import ConsumerGroupMetadata
    from barnabas.clients.producer.producer import Producer
    from barnabas.clients.records import ConsumerRecord, RecordMetadata, ShareRecord
    from barnabas.clients.security.settings import SecuritySettings
    from barnabas.clients.share.share_consumer import ShareConsumer
    from barnabas.protocol.errors import BrokerError, ErrorCode
    from barnabas.protocol.topic_partition import TopicPartition

_MODULES = {
    "barnabas.clients.admin.admin": (
        "Admin",
        "ClusterDescription",
        "CreatedTopic",
        "ListedOffset",
        "PartitionDescription",
        "TopicDescription",
    ),
    "barnabas.clients.config": (
        "AdminConfig",
        "ClientConfig",
        "ConsumerConfig",
        "ProducerConfig",
        "ShareConsumerConfig",
    ),
    "barnabas.clients.consumer.consumer": ("Consumer",),
    "barnabas.clients.errors": (
        "AuthenticationError",
        "BrokerConnectionError",
        "BrokerTimeoutError",
        "BufferFullError",
        "ClientConfigError",
        "ClientError",
        "ClosedError",
        "CommitFailedError",
        "CorruptBatchError",
        "DeliveryTimeoutError",
        "LockLostError",
        "OffsetOutOfRangeError",
        "ProducerFencedError",
        "ProtocolViolationError",
        "RecordTooLargeError",
        "RefusedError",
        "TransactionAbortableError",
        "TransactionAbortedError",
        "UnknownTopicError",
    ),
    "barnabas.clients.group_offsets": ("ConsumerGroupMetadata",),
    "barnabas.clients.producer.producer": ("Producer",),
    "barnabas.clients.consumer.rebalance_listener": ("RebalanceListener",),
    "barnabas.clients.records": ("ConsumerRecord", "RecordMetadata", "ShareRecord"),
    "barnabas.clients.security.settings": ("SecuritySettings",),
    "barnabas.clients.share.share_consumer": ("ShareConsumer",),
    "barnabas.protocol.errors": ("BrokerError", "ErrorCode"),
    "barnabas.protocol.topic_partition": ("TopicPartition",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [  # noqa: RUF022 - by purpose
    "Producer",
    "ProducerConfig",
    "RecordMetadata",
    "Consumer",
    "ConsumerConfig",
    "ConsumerGroupMetadata",
    "ConsumerRecord",
    "RebalanceListener",
    "ShareConsumer",
    "ShareConsumerConfig",
    "ShareRecord",
    "Admin",
    "AdminConfig",
    "ClusterDescription",
    "CreatedTopic",
    "ListedOffset",
    "PartitionDescription",
    "TopicDescription",
    "ClientConfig",
    "SecuritySettings",
    "TopicPartition",
    "ErrorCode",
    "BrokerError",
    "AuthenticationError",
    "BrokerConnectionError",
    "BrokerTimeoutError",
    "BufferFullError",
    "ClientConfigError",
    "ClientError",
    "ClosedError",
    "CommitFailedError",
    "CorruptBatchError",
    "DeliveryTimeoutError",
    "LockLostError",
    "OffsetOutOfRangeError",
    "ProducerFencedError",
    "ProtocolViolationError",
    "RecordTooLargeError",
    "RefusedError",
    "TransactionAbortableError",
    "TransactionAbortedError",
    "UnknownTopicError",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its module."""
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'barnabas' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
