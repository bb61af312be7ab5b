"""CreateTopics (19), DeleteTopics (20) and CreatePartitions (37): an error and a message for each topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.uuids import ZERO_UUID
from barnabas.protocol.wire.fields import since, tagged, until, unwired
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import (
    Bool,
    Error,
    Int8,
    Int16,
    Int32,
    Message,
    Nullable,
    NullableString,
    String,
    Uuid,
)

DEFAULT_COUNT = -1
"""Partition count or replication factor: the broker's default."""


class CreatableTopicConfigs(Struct):
    """A config of a created topic. `source`: as in ConfigEntry."""

    name: String
    value: NullableString
    read_only: Bool
    source: Int8
    sensitive: Bool


class CreatableTopicResult(Struct):
    """A created topic. `config_error`: why partitions, replication factor and configs are left out."""

    name: String
    topic_id: Uuid = since(7, default=ZERO_UUID)
    error: Error = ErrorCode.NONE
    message: Message = None
    config_error: Error = tagged(0, default=ErrorCode.NONE, since=5)
    partitions: Int32 = since(5, default=-1)
    replication_factor: Int16 = since(5, default=-1)
    configs: Annotated[Sequence[CreatableTopicConfigs] | None, Nullable(5)] = since(5, default=())
    warning: str | None = unwired(default=None)
    """Of a topic that Apache Kafka 4.x would refuse to open."""


class CreateTopicsResponse(Struct, flexible=5):
    """In the order of the request; a name that occurs twice has one row."""

    throttle_ms: Int32 = 0
    topics: Sequence[CreatableTopicResult]


class ReplicaAssignment(Struct):
    """The node ids of a partition's replicas, the preferred leader first."""

    partition: Int32
    replicas: tuple[Int32, ...]


class NewTopicConfig(Struct):
    """A config by Kafka's name; null, which the protocol allows, is refused."""

    name: String
    value: NullableString


def config_rows(values: Mapping[str, str | None]) -> list[NewTopicConfig]:
    """Return configs as a request has them."""
    return [NewTopicConfig(name=name, value=value) for name, value in values.items()]


class NewTopic(Struct):
    """With `assignments` the two counts must be DEFAULT_COUNT: the assignments determine them."""

    name: String
    partitions: Int32 = DEFAULT_COUNT
    replication_factor: Int16 = DEFAULT_COUNT
    assignments: Sequence[ReplicaAssignment] = ()
    configs: Sequence[NewTopicConfig] = ()

    @property
    def values(self) -> dict[str, str | None]:
        """The configs by name. The last value of one that occurs twice counts, as in Kafka."""
        return {each.name: each.value for each in self.configs}


class CreateTopicsRequest(Request[CreateTopicsResponse], api=ApiKey.CREATE_TOPICS, flexible=5):
    """`validate_only`: answer without creating anything."""

    topics: Sequence[NewTopic]
    timeout_ms: Int32 = 60_000
    validate_only: Bool = False

    @property
    def describe(self) -> bool:
        """The answer has each topic's configs as well."""
        return self.version >= 5

    @property
    def is_quota_strict(self) -> bool:
        """The client knows THROTTLING_QUOTA_EXCEEDED."""
        return self.version >= 6

    def refused(self, code: ErrorCode, message: str) -> CreateTopicsResponse:
        """The same refusal for every topic."""
        names = dict.fromkeys(each.name for each in self.topics)
        return CreateTopicsResponse(
            topics=[CreatableTopicResult(name=name, error=code, message=message) for name in names]
        )


class DeletableTopicResult(Struct):
    """A deleted topic. `name` is None where the request had none and the id is unknown."""

    name: Annotated[String | None, Nullable(6)]
    topic_id: Uuid = since(6, default=ZERO_UUID)
    error: Error = ErrorCode.NONE
    message: Message = since(5, default=None)


class DeleteTopicsResponse(Struct, flexible=4):
    """In the order of the request; a topic that occurs twice has one row."""

    throttle_ms: Int32 = 0
    topics: Sequence[DeletableTopicResult]


class TopicReference(Struct):
    """A topic by its name or its id (ZERO_UUID: no id). Neither or both is refused."""

    name: NullableString
    topic_id: Uuid = ZERO_UUID


class DeleteTopicsRequest(Request[DeleteTopicsResponse], api=ApiKey.DELETE_TOPICS, flexible=4):
    """Topics by name, from version 6 on by name or id."""

    references: Sequence[TopicReference] = since(6, default=())
    names: Sequence[String] = until(5, default=())
    timeout_ms: Int32 = 60_000

    @property
    def topics(self) -> list[TopicReference]:
        """The topics of either field."""
        return [*(TopicReference(name=name) for name in self.names), *self.references]

    @property
    def is_quota_strict(self) -> bool:
        """The client knows THROTTLING_QUOTA_EXCEEDED."""
        return self.version >= 5

    def known(self, error: ErrorCode) -> ErrorCode:
        """Return an error as the client knows it: TOPIC_DELETION_DISABLED came with version 3."""
        return ErrorCode.INVALID_REQUEST if error is ErrorCode.TOPIC_DELETION_DISABLED and self.version < 3 else error

    def refused(self, code: ErrorCode, message: str) -> DeleteTopicsResponse:
        """The same refusal for every topic."""
        asked = dict.fromkeys((each.name, each.topic_id) for each in self.topics)
        return DeleteTopicsResponse(
            topics=[
                DeletableTopicResult(name=name, topic_id=topic_id, error=code, message=message)
                for name, topic_id in asked
            ]
        )


class CreatePartitionsTopicResult(Struct):
    """A topic that has more partitions."""

    name: String
    error: Error = ErrorCode.NONE
    message: Message = None


class CreatePartitionsResponse(Struct, flexible=2):
    """In the order of the request; a name that occurs twice has one row."""

    throttle_ms: Int32 = 0
    topics: Sequence[CreatePartitionsTopicResult]


class NewPartitionAssignment(Struct):
    """The replicas of a new partition."""

    replicas: tuple[Int32, ...]


class NewPartitions(Struct):
    """`count`: the new total of partitions. `assignments`: one for each new partition."""

    name: String
    count: Int32
    assignments: Annotated[Sequence[NewPartitionAssignment] | None, Nullable()] = None


class CreatePartitionsRequest(Request[CreatePartitionsResponse], api=ApiKey.CREATE_PARTITIONS, flexible=2):
    """`validate_only`: answer without changing anything."""

    topics: Sequence[NewPartitions]
    timeout_ms: Int32 = 60_000
    validate_only: Bool = False

    @property
    def is_quota_strict(self) -> bool:
        """The client knows THROTTLING_QUOTA_EXCEEDED."""
        return self.version >= 3

    def refused(self, code: ErrorCode, message: str) -> CreatePartitionsResponse:
        """The same refusal for every topic."""
        names = dict.fromkeys(each.name for each in self.topics)
        return CreatePartitionsResponse(
            topics=[CreatePartitionsTopicResult(name=name, error=code, message=message) for name in names]
        )
