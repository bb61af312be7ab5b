"""Classification of delivery failures: which are retriable, and the error of a batch whose attempts are over."""

from __future__ import annotations

from barnabas.clients.config import ProducerConfig
from barnabas.clients.errors import (
    BrokerConnectionError,
    BrokerTimeoutError,
    DeliveryTimeoutError,
    ProtocolViolationError,
    RefusedError,
)
from barnabas.clients.producer.batch import ProducerBatch
from barnabas.protocol.errors import ErrorCode

STALE_METADATA_CODES = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
"""Codes after which another broker may lead the partition."""


def may_pass(error: BaseException) -> bool:
    """Whether the same request may succeed at a later attempt."""
    if isinstance(error, RefusedError):
        return error.retriable
    return isinstance(error, (BrokerConnectionError, BrokerTimeoutError)) and not isinstance(
        error, ProtocolViolationError
    )


def gave_up(batch: ProducerBatch, config: ProducerConfig) -> Exception:
    """The error of a batch whose attempts ended by `retries` or delivery_timeout_ms."""
    last = batch.last_error
    topic_partition = batch.queue.topic_partition
    if batch.attempts > config.retries:
        what = f"{topic_partition}: {len(batch)} records were not delivered in {batch.attempts} attempts"
        if isinstance(last, (BrokerConnectionError, BrokerTimeoutError)):
            return type(last)(f"{what}: {last}")
        if isinstance(last, RefusedError):
            return last
    reason = f"last error: {last}" if last is not None else "the records before them were not delivered either"
    return DeliveryTimeoutError(
        topic_partition,
        f"{topic_partition}: {len(batch)} records were not delivered within "
        f"delivery_timeout_ms={config.delivery_timeout_ms} ({batch.attempts} failed attempts); {reason}",
        last,
    )
