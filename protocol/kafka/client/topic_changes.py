"""CreateTopics (19), DeleteTopics (20), CreatePartitions (37), IncrementalAlterConfigs (44) and DeleteRecords (21)."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.kafka.client.fields import ERROR
from barnabas.protocol.kafka.data import delete_records
from barnabas.protocol.kafka.schema import (
    INT32,
    INT64,
    STRING,
    Message,
    rows,
)
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.configs import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
from barnabas.protocol.messages.data.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from barnabas.protocol.messages.topics.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

CREATE_TOPICS: Final = ClientApi(ApiKey.CREATE_TOPICS, 4, 7, CreateTopicsRequest, CreateTopicsResponse)
DELETE_TOPICS: Final = ClientApi(ApiKey.DELETE_TOPICS, 1, 5, DeleteTopicsRequest, DeleteTopicsResponse)
"""By name; from version 6 on, topics are in another field."""

CREATE_PARTITIONS: Final = ClientApi(ApiKey.CREATE_PARTITIONS, 0, 3, CreatePartitionsRequest, CreatePartitionsResponse)

INCREMENTAL_ALTER_CONFIGS: Final = ClientApi(
    ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
)

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
