"""CreateTopics (19), DeleteTopics (20), CreatePartitions (37), IncrementalAlterConfigs (44) and DeleteRecords (21)."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.kafka.client.fields import ERROR
from barnabas.protocol.kafka.data import delete_records
from barnabas.protocol.kafka.schema import (
    BOOL,
    INT8,
    INT16,
    INT32,
    INT64,
    NULLABLE_STRING,
    STRING,
    UUID,
    Array,
    Computed,
    Message,
    Struct,
    rows,
    since,
)
from barnabas.protocol.kafka.topics import create_partitions
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.configs import AlterConfigsResponse, AlterConfigsResult, ConfigResource
from barnabas.protocol.messages.data.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from barnabas.protocol.messages.topics.topics import TopicResult, TopicsResponse

_CONFIG: Final = Struct(dict, name=STRING, value=NULLABLE_STRING, read_only=BOOL, source=INT8, sensitive=BOOL)
_NAMED_CONFIG: Final = Struct(
    name=Computed(STRING, lambda pair: pair[0]), value=Computed(NULLABLE_STRING, lambda pair: pair[1])
)

CREATE_TOPICS: Final = ClientApi(
    ApiKey.CREATE_TOPICS,
    4,
    7,
    Message(
        5,
        topics=rows(
            name=STRING,
            partitions=INT32,
            replication_factor=INT16,
            assignments=rows(partition=INT32, replicas=Array(INT32)),
            configs=Computed(Array(_NAMED_CONFIG), lambda topic: list(topic.configs.items())),
        ),
        timeout_ms=INT32,
        validate_only=BOOL,
    ),
    Message(
        5,
        TopicsResponse,
        _throttle_ms=INT32,
        topics=rows(
            TopicResult,
            name=STRING,
            topic_id=since(7, UUID),
            error=ERROR,
            message=NULLABLE_STRING,
            partitions=since(5, INT32),
            replication_factor=since(5, INT16),
            _configs=since(5, Array(_CONFIG, nullable_from=5)),
        ),
    ),
)
"""Writes a CreateTopicsRequest, reads a TopicsResponse."""

DELETE_TOPICS: Final = ClientApi(
    ApiKey.DELETE_TOPICS,
    1,
    5,
    Message(4, names=Array(STRING), timeout_ms=INT32),
    Message(
        4,
        TopicsResponse,
        _throttle_ms=INT32,
        topics=rows(TopicResult, name=STRING, error=ERROR, message=since(5, NULLABLE_STRING)),
    ),
)
"""Writes a DeleteTopicsRequest with names, reads a TopicsResponse."""

CREATE_PARTITIONS: Final = ClientApi(
    ApiKey.CREATE_PARTITIONS,
    0,
    3,
    create_partitions.REQUEST,
    Message(
        2,
        TopicsResponse,
        _throttle_ms=INT32,
        topics=rows(TopicResult, name=STRING, error=ERROR, message=NULLABLE_STRING),
    ),
)
"""Writes a CreatePartitionsRequest, reads a TopicsResponse."""

INCREMENTAL_ALTER_CONFIGS: Final = ClientApi(
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    0,
    1,
    Message(
        1,
        resources=rows(
            type=Computed(INT8, lambda each: each.resource.type),
            name=Computed(STRING, lambda each: each.resource.name),
            operations=rows(name=STRING, operation=INT8, value=NULLABLE_STRING),
        ),
        validate_only=BOOL,
    ),
    Message(
        1,
        AlterConfigsResponse,
        _throttle_ms=INT32,
        results=rows(
            lambda error, message, type, name: AlterConfigsResult(ConfigResource(type, name), error, message),
            error=ERROR,
            message=NULLABLE_STRING,
            type=INT8,
            name=STRING,
        ),
    ),
)
"""Writes an AlterConfigsRequest, reads an AlterConfigsResponse."""

DELETE_RECORDS: Final = ClientApi(
    ApiKey.DELETE_RECORDS,
    0,
    2,
    delete_records.REQUEST,
    Message(
        2,
        DeleteRecordsResponse,
        _throttle_ms=INT32,
        topics=rows(
            DeleteRecordsTopicResult,
            name=STRING,
            partitions=rows(DeleteRecordsPartitionResult, partition=INT32, low_watermark=INT64, error=ERROR),
        ),
    ),
)
"""Writes a DeleteRecordsRequest, reads a DeleteRecordsResponse."""
