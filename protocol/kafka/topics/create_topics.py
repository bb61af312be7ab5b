"""CreateTopics (19), versions 2-7.

From version 5 on the answer describes what was made: partitions, replication factor, configs; version 7 adds the id.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.kafka.cluster.config_codes import source_code
from barnabas.protocol.messages.topics.topics import (
    CreateTopicsRequest,
    NewTopic,
    ReplicaAssignment,
    TopicResult,
    TopicsResponse,
)

_API: Final = "create_topics"
_DESCRIBED_FROM: Final = 5


def decode_request(version: int, body: memoryview) -> CreateTopicsRequest:
    """Raises DecodeError. Of a config that comes twice the last value holds, as in Kafka."""
    request = entities.read_request(_API, version, body)
    return CreateTopicsRequest(
        [_new_topic(topic) for topic in request.topics],
        entities.milliseconds(request.timeout),
        request.validate_only,
        describe=version >= _DESCRIBED_FROM,
    )


def encode_response(version: int, response: TopicsResponse) -> bytes:
    """One row for each topic that was asked for; of a name that comes twice one row in all."""
    by_name = {topic.name: topic for topic in response.topics}
    return _encode(version, list(by_name.values()))


def encode_error(version: int, request: CreateTopicsRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every topic."""
    return _encode(version, [TopicResult(topic.name, code, message) for topic in request.topics])


def _encode(version: int, topics: list[TopicResult]) -> bytes:
    schema = entities.response_schema(_API, version)
    return entities.write(
        entities.make(
            schema.CreateTopicsResponse,
            throttle_time=entities.NO_THROTTLE,
            topics=tuple(_row(schema, topic) for topic in topics),
        )
    )


def _row(schema: Any, topic: TopicResult) -> Any:
    return entities.make(
        schema.CreatableTopicResult,
        name=topic.name,
        topic_id=entities.uuid_of(topic.topic_id),
        error_code=topic.error,
        # Kafka's clients take a message for a failure's, but none of them shows one that comes with NONE.
        error_message=None if topic.error is ErrorCode.NONE else entities.sentence(topic.message),
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        configs=tuple(
            schema.CreatableTopicConfigs(
                name=config.name,
                value=config.value,
                read_only=config.read_only,
                config_source=source_code(config.source),
                is_sensitive=config.sensitive,
            )
            for config in sorted(topic.configs or (), key=lambda config: config.name)
        )
        if hasattr(schema, "CreatableTopicConfigs")
        else (),
    )


def _new_topic(topic: Any) -> NewTopic:
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        {config.name: config.value for config in topic.configs},
        [ReplicaAssignment(each.partition_index, each.broker_ids) for each in topic.assignments],
    )
