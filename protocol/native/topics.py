"""create_topics (19), delete_topics (20) and create_partitions (37): an error and a message for each topic.

    create_topics      topics [[name, partitions, replication_factor, [[config, value]]]], timeout_ms int,
                       validate_only bool (default false); -1 partitions or replicas = the broker's default
    delete_topics      topics [name], timeout_ms int
    create_partitions  topics [[name, count]], timeout_ms int, validate_only bool; `count` is the new total
    responses          topics [[name, error, message, topic_id, partitions]]

`message` may be a warning where the error is 0. `topic_id` is text (22 characters).
"""

from __future__ import annotations

from typing import Any, TypeVar

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.topics.topics import (
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    NewPartitions,
    NewTopic,
    config_rows,
)
from barnabas.protocol.native.fields import (
    INT16,
    INT32,
    array,
    boolean,
    error_code,
    field,
    integer,
    long_text,
    row,
    text,
)
from barnabas.protocol.uuids import parse_uuid, uuid_text

DEFAULT_TIMEOUT_MS = 60_000

R = TypeVar("R", CreatableTopicResult, DeletableTopicResult, CreatePartitionsTopicResult)


def encode_create_topics(request: CreateTopicsRequest) -> dict[str, Any]:
    """The body of a create_topics request."""
    return {
        "topics": [
            [topic.name, topic.partitions, topic.replication_factor, [list(item) for item in topic.values.items()]]
            for topic in request.topics
        ],
        "timeout_ms": request.timeout_ms,
        "validate_only": request.validate_only,
    }


def decode_create_topics(body: dict[str, Any]) -> CreateTopicsRequest:
    """Raises DecodeError, naming the field."""
    return CreateTopicsRequest(
        topics=[_new_topic(entry) for entry in array(field(body, "topics"), "topics")],
        timeout_ms=_timeout(body),
        validate_only=boolean(field(body, "validate_only", False), "validate_only"),
    )


def encode_delete_topics(request: DeleteTopicsRequest) -> dict[str, Any]:
    """The body of a delete_topics request."""
    return {"topics": request.names, "timeout_ms": request.timeout_ms}


def decode_delete_topics(body: dict[str, Any]) -> DeleteTopicsRequest:
    """Raises DecodeError, naming the field."""
    return DeleteTopicsRequest(
        names=[text(name, "topics[]") for name in array(field(body, "topics"), "topics")], timeout_ms=_timeout(body)
    )


def encode_create_partitions(request: CreatePartitionsRequest) -> dict[str, Any]:
    """The body of a create_partitions request."""
    return {
        "topics": [[topic.name, topic.count] for topic in request.topics],
        "timeout_ms": request.timeout_ms,
        "validate_only": request.validate_only,
    }


def decode_create_partitions(body: dict[str, Any]) -> CreatePartitionsRequest:
    """Raises DecodeError, naming the field."""
    topics = []
    for entry in array(field(body, "topics"), "topics"):
        name, count = row(entry, "topics[]", 2)
        topics.append(NewPartitions(name=text(name, "name"), count=integer(count, "count", INT32)))
    return CreatePartitionsRequest(
        topics=topics,
        timeout_ms=_timeout(body),
        validate_only=boolean(field(body, "validate_only", False), "validate_only"),
    )


def encode_create_topics_response(response: CreateTopicsResponse) -> dict[str, Any]:
    """The body of an answer."""
    return {"topics": [_row(topic, topic.message or topic.warning) for topic in response.topics]}


def encode_delete_topics_response(response: DeleteTopicsResponse) -> dict[str, Any]:
    """The body of an answer."""
    return {"topics": [_row(topic, topic.message) for topic in response.topics]}


def encode_create_partitions_response(response: CreatePartitionsResponse) -> dict[str, Any]:
    """The body of an answer."""
    return {"topics": [_row(topic, topic.message) for topic in response.topics]}


def decode_create_topics_response(body: dict[str, Any]) -> CreateTopicsResponse:
    """Raises DecodeError, naming the field."""
    results = _results(body, CreatableTopicResult)
    for each in results:
        if each.error is ErrorCode.NONE:
            each.message, each.warning = None, each.message
    return CreateTopicsResponse(topics=results)


def decode_delete_topics_response(body: dict[str, Any]) -> DeleteTopicsResponse:
    """Raises DecodeError, naming the field."""
    return DeleteTopicsResponse(topics=_results(body, DeletableTopicResult))


def decode_create_partitions_response(body: dict[str, Any]) -> CreatePartitionsResponse:
    """Raises DecodeError, naming the field."""
    return CreatePartitionsResponse(topics=_results(body, CreatePartitionsTopicResult))


def _timeout(body: dict[str, Any]) -> int:
    return integer(field(body, "timeout_ms", DEFAULT_TIMEOUT_MS), "timeout_ms", INT32)


def _new_topic(entry: Any) -> NewTopic:
    name, partitions, replication_factor, pairs = row(entry, "topics[]", 4)
    configs: dict[str, str] = {}
    for pair in array(pairs, "configs"):
        config, value = row(pair, "configs[]", 2)
        configs[text(config, "config")] = text(value, "value")
    return NewTopic(
        name=text(name, "name"),
        partitions=integer(partitions, "partitions", INT32),
        replication_factor=integer(replication_factor, "replication_factor", INT16),
        configs=config_rows(configs),
    )


def _row(
    topic: CreatableTopicResult | DeletableTopicResult | CreatePartitionsTopicResult, message: str | None
) -> list[Any]:
    return [topic.name, int(topic.error), message, uuid_text(topic.topic_id), topic.partitions]


def _results(body: dict[str, Any], kind: type[R]) -> list[R]:
    results = []
    for entry in array(field(body, "topics"), "topics"):
        name, error, message, topic_id, partitions = row(entry, "topics[]", 5)
        results.append(
            kind(
                name=text(name, "name"),
                error=error_code(error, "error"),
                message=long_text(message, "message"),
                topic_id=parse_uuid(text(topic_id, "topic_id")),
                partitions=integer(partitions, "partitions", INT32),
            )
        )
    return results
