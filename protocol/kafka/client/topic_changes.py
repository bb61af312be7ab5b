"""CreateTopics (19), DeleteTopics (20), CreatePartitions (37), IncrementalAlterConfigs (44) and DeleteRecords (21)."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.configs import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
from barnabas.protocol.messages.data.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
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

DELETE_RECORDS: Final = ClientApi(ApiKey.DELETE_RECORDS, 0, 2, DeleteRecordsRequest, DeleteRecordsResponse)
