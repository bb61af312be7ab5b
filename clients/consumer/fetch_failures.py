"""Deadline of a partition's fetch failures, after which the reader gets the error."""

from __future__ import annotations

from barnabas.clients.config import ConsumerConfig
from barnabas.clients.consumer.assigned_partition import AssignedPartition
from barnabas.clients.errors import (
    BrokerConnectionError,
    BrokerTimeoutError,
    ClientError,
    RefusedError,
    UnknownTopicError,
)
from barnabas.clients.network.cluster import UNKNOWN_TOPIC_WAIT_S
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.topic_partition import TopicPartition


def note_failure(
    state: AssignedPartition, error: ClientError, now: float, config: ConsumerConfig
) -> ClientError | None:
    """Count a retriable failure of the partition. Returns the error to raise once failures have lasted too long.

    `now` is the loop's time in seconds. The limit is api_timeout_ms, and UNKNOWN_TOPIC_WAIT_S for an unknown topic.
    """
    if state.failing_since is None:
        state.failing_since = now
    state.failures += 1
    failing_s = now - state.failing_since
    unknown = isinstance(error, RefusedError) and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if unknown and failing_s > UNKNOWN_TOPIC_WAIT_S:
        topic, partition = state.topic_partition
        return UnknownTopicError(topic, partition, f"{state.topic_partition}: it does not exist (any more)")
    if failing_s > config.api_timeout_ms / 1000:
        return _for_too_long(state.topic_partition, config.api_timeout_ms, error)
    return None


def _for_too_long(topic_partition: TopicPartition, api_timeout_ms: int, error: ClientError) -> ClientError:
    sentence = f"{topic_partition}: could not be read for api_timeout_ms={api_timeout_ms}: {error}"
    if isinstance(error, RefusedError):
        topic, partition = topic_partition
        return RefusedError(error.code, sentence, topic=topic, partition=partition)
    if isinstance(error, BrokerConnectionError):
        return BrokerConnectionError(sentence)
    return BrokerTimeoutError(sentence)
