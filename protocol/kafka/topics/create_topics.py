"""CreateTopics (19), versions 2-7.

From version 5 on the answer has the new topic's partitions, replication factor and configs; version 7 adds the id.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.cluster.config_codes import source_code
from barnabas.protocol.kafka.schema import (
    BOOL,
    FAILURE_MESSAGE,
    INT8,
    INT16,
    INT32,
    NO_THROTTLE,
    NULLABLE_STRING,
    STRING,
    UUID,
    Array,
    Computed,
    Message,
    Struct,
    Tagged,
    rows,
    since,
)
from barnabas.protocol.messages.cluster.configs import ConfigEntry
from barnabas.protocol.messages.topics.topics import (
    CreateTopicsRequest,
    NewTopic,
    ReplicaAssignment,
    TopicResult,
    TopicsResponse,
)

_DESCRIBED_FROM: Final = 5
_QUOTA_ERROR_FROM: Final = 6

_NEW_TOPIC = Struct(
    NewTopic,
    name=STRING,
    partitions=INT32,
    replication_factor=INT16,
    assignments=rows(ReplicaAssignment, partition=INT32, replicas=Array(INT32, make=tuple)),
    # The last value of a config that occurs twice counts, as in Kafka.
    configs=Array(Struct(lambda name, value: (name, value), name=STRING, value=NULLABLE_STRING), make=dict),
)
REQUEST = Message(5, CreateTopicsRequest, topics=Array(_NEW_TOPIC), timeout_ms=INT32, validate_only=BOOL)


def _sorted_configs(topic: TopicResult) -> Sequence[ConfigEntry]:
    return sorted(topic.configs or (), key=lambda config: config.name)


_CONFIG = Struct(
    name=STRING,
    value=NULLABLE_STRING,
    read_only=BOOL,
    source=Computed(INT8, lambda config: source_code(config.source)),
    sensitive=BOOL,
)
_TOPIC = Struct(
    name=STRING,
    topic_id=since(7, UUID),
    error=INT16,
    message=FAILURE_MESSAGE,
    config_error=since(5, Tagged(INT16, tag=0, default=ErrorCode.NONE)),
    partitions=since(5, INT32),
    replication_factor=since(5, INT16),
    configs=since(5, Computed(Array(_CONFIG, nullable_from=0), _sorted_configs)),
)
RESPONSE = Message(5, throttle_ms=NO_THROTTLE, topics=Array(_TOPIC))


def decode_request(version: int, body: memoryview) -> CreateTopicsRequest:
    """Raises DecodeError."""
    request: CreateTopicsRequest = REQUEST.read(version, body)
    request.describe = version >= _DESCRIBED_FROM
    request.is_quota_strict = version >= _QUOTA_ERROR_FROM
    return request


def encode_response(version: int, response: TopicsResponse) -> bytes:
    """One row for each topic of the request; a name that occurs twice has one row, as in Kafka."""
    by_name = {topic.name: topic for topic in response.topics}
    return RESPONSE.write(version, TopicsResponse(list(by_name.values())))


def encode_error(version: int, request: CreateTopicsRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every topic."""
    return RESPONSE.write(version, TopicsResponse([TopicResult(each.name, code, message) for each in request.topics]))
