"""DeleteTopics (20), versions 1-6: by name, from version 6 on by id as well.

TOPIC_DELETION_DISABLED came with version 3; older clients get INVALID_REQUEST, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    FAILURE_MESSAGE,
    INT16,
    INT32,
    NO_THROTTLE,
    NULLABLE_STRING,
    STRING,
    UUID,
    Array,
    Computed,
    Message,
    Sized,
    Struct,
    rows,
    since,
    until,
)
from barnabas.protocol.messages.topics.topics import DeleteTopicsRequest, TopicReference, TopicResult, TopicsResponse


def _request(
    timeout_ms: int, names: list[str] | None = None, references: Sequence[TopicReference] = ()
) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(names or [], timeout_ms, references)


REQUEST = Message(
    4,
    _request,
    references=since(6, rows(TopicReference, name=NULLABLE_STRING, topic_id=UUID)),
    names=until(5, Array(STRING)),
    timeout_ms=INT32,
)


def _error_before_deletion_could_be_disabled(topic: TopicResult) -> ErrorCode:
    return ErrorCode.INVALID_REQUEST if topic.error is ErrorCode.TOPIC_DELETION_DISABLED else topic.error


_TOPIC = Struct(
    name=Sized("string", nullable_from=6),
    topic_id=since(6, UUID),
    old_error=until(2, Computed(INT16, _error_before_deletion_could_be_disabled)),
    error=since(3, INT16),
    message=since(5, FAILURE_MESSAGE),
)
RESPONSE = Message(4, throttle_ms=NO_THROTTLE, topics=Array(_TOPIC))

_QUOTA_ERROR_FROM: Final = 5


def decode_request(version: int, body: memoryview) -> DeleteTopicsRequest:
    """Raises DecodeError."""
    request: DeleteTopicsRequest = REQUEST.read(version, body)
    request.is_quota_strict = version >= _QUOTA_ERROR_FROM
    return request


def encode_response(version: int, response: TopicsResponse) -> bytes:
    """One row for each topic of the request; a topic that occurs twice has one row."""
    by_reference = {(topic.name, topic.topic_id): topic for topic in response.topics}
    return RESPONSE.write(version, TopicsResponse(list(by_reference.values())))


def encode_error(version: int, request: DeleteTopicsRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every topic."""
    rows = [TopicResult(name, code, message) for name in request.names]
    rows += [TopicResult(each.name, code, message, each.topic_id) for each in request.references]
    return RESPONSE.write(version, TopicsResponse(rows))
