"""DeleteTopics (20), versions 1-6: by name, from version 6 on by id as well.

TOPIC_DELETION_DISABLED came with version 3; older clients are told INVALID_REQUEST, as Kafka does it.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.topics.topics import DeleteTopicsRequest, TopicReference, TopicResult, TopicsResponse
from barnabas.protocol.uuids import ZERO_UUID

_API: Final = "delete_topics"
_REFERENCES_FROM: Final = 6
_DISABLED_FROM: Final = 3


def decode_request(version: int, body: memoryview) -> DeleteTopicsRequest:
    """Raises DecodeError."""
    request = entities.read_request(_API, version, body)
    timeout_ms = entities.milliseconds(request.timeout)
    if version < _REFERENCES_FROM:
        return DeleteTopicsRequest(list(request.topic_names), timeout_ms)
    references = [TopicReference(topic.name, entities.id_bytes(topic.topic_id)) for topic in request.topics]
    return DeleteTopicsRequest([], timeout_ms, references)


def encode_response(version: int, response: TopicsResponse) -> bytes:
    """One row for each topic that was asked for; of one that comes twice one row in all."""
    by_reference = {(topic.name, topic.topic_id): topic for topic in response.topics}
    return _encode(version, list(by_reference.values()))


def encode_error(version: int, request: DeleteTopicsRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every topic."""
    rows = [TopicResult(name, code, message) for name in request.names]
    rows += [TopicResult(each.name or "", code, message, each.topic_id) for each in request.references]
    return _encode(version, rows)


def _encode(version: int, topics: list[TopicResult]) -> bytes:
    schema = entities.response_schema(_API, version)
    return entities.write(
        entities.make(
            schema.DeleteTopicsResponse,
            throttle_time=entities.NO_THROTTLE,
            responses=tuple(_row(version, schema, topic) for topic in topics),
        )
    )


def _row(version: int, schema: Any, topic: TopicResult) -> Any:
    error = topic.error
    if error is ErrorCode.TOPIC_DELETION_DISABLED and version < _DISABLED_FROM:
        error = ErrorCode.INVALID_REQUEST
    is_nameless = version >= _REFERENCES_FROM and not topic.name and topic.topic_id != ZERO_UUID
    return entities.make(
        schema.DeletableTopicResult,
        name=None if is_nameless else topic.name,
        topic_id=entities.uuid_of(topic.topic_id),
        error_code=error,
        error_message=None if error is ErrorCode.NONE else entities.sentence(topic.message),
    )
