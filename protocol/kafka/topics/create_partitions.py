"""CreatePartitions (37), versions 0-3."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    BOOL,
    FAILURE_MESSAGE,
    INT16,
    INT32,
    NO_THROTTLE,
    STRING,
    Array,
    Message,
    Struct,
    rows,
)
from barnabas.protocol.messages.topics.topics import CreatePartitionsRequest, NewPartitions, TopicResult, TopicsResponse

_ASSIGNMENT = Struct(lambda replicas: replicas, replicas=Array(INT32, make=tuple))
REQUEST = Message(
    2,
    CreatePartitionsRequest,
    topics=rows(NewPartitions, name=STRING, count=INT32, assignments=Array(_ASSIGNMENT, nullable_from=0)),
    timeout_ms=INT32,
    validate_only=BOOL,
)
RESPONSE = Message(2, throttle_ms=NO_THROTTLE, topics=rows(name=STRING, error=INT16, message=FAILURE_MESSAGE))

_QUOTA_ERROR_FROM: Final = 3


def decode_request(version: int, body: memoryview) -> CreatePartitionsRequest:
    """Raises DecodeError."""
    request: CreatePartitionsRequest = REQUEST.read(version, body)
    request.is_quota_strict = version >= _QUOTA_ERROR_FROM
    return request


def encode_response(version: int, response: TopicsResponse) -> bytes:
    """One row for each topic of the request; a name that occurs twice has one row, as in Kafka."""
    by_name = {topic.name: topic for topic in response.topics}
    return RESPONSE.write(version, TopicsResponse(list(by_name.values())))


def encode_error(version: int, request: CreatePartitionsRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every topic."""
    return RESPONSE.write(version, TopicsResponse([TopicResult(each.name, code, message) for each in request.topics]))
