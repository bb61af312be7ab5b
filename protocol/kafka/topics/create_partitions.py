"""CreatePartitions (37), versions 0-3."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.topics.topics import CreatePartitionsRequest, NewPartitions, TopicResult, TopicsResponse

_API: Final = "create_partitions"


def decode_request(version: int, body: memoryview) -> CreatePartitionsRequest:
    """Raises DecodeError."""
    request = entities.read_request(_API, version, body)
    topics = [
        NewPartitions(
            topic.name,
            topic.count,
            None if topic.assignments is None else [each.broker_ids for each in topic.assignments],
        )
        for topic in request.topics
    ]
    return CreatePartitionsRequest(topics, entities.milliseconds(request.timeout), request.validate_only)


def encode_response(version: int, response: TopicsResponse) -> bytes:
    """One row for each topic that was asked for; of a name that comes twice one row in all."""
    by_name = {topic.name: topic for topic in response.topics}
    return _encode(version, list(by_name.values()))


def encode_error(version: int, request: CreatePartitionsRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every topic."""
    return _encode(version, [TopicResult(topic.name, code, message) for topic in request.topics])


def _encode(version: int, topics: list[TopicResult]) -> bytes:
    schema = entities.response_schema(_API, version)
    rows = tuple(
        schema.CreatePartitionsTopicResult(
            name=topic.name,
            error_code=topic.error,
            error_message=None if topic.error is ErrorCode.NONE else entities.sentence(topic.message),
        )
        for topic in topics
    )
    return entities.write(schema.CreatePartitionsResponse(throttle_time=entities.NO_THROTTLE, results=rows))
