"""OffsetCommit (8) without a member, and DeleteGroups (42)."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.kafka.client.fields import ERROR
from barnabas.protocol.kafka.schema import (
    INT32,
    INT64,
    NULLABLE_STRING,
    STRING,
    Constant,
    Message,
    Versions,
    rows,
    since,
)
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.groups import DeleteGroupsRequest, DeleteGroupsResponse
from barnabas.protocol.messages.groups.offset_commit import (
    OffsetCommitPartitionResult,
    OffsetCommitResponse,
    OffsetCommitTopicResult,
)

OFFSET_COMMIT: Final = ClientApi(
    ApiKey.OFFSET_COMMIT,
    2,
    9,
    Message(
        8,
        group_id=STRING,
        generation=INT32,
        member_id=STRING,
        group_instance_id=since(7, NULLABLE_STRING),
        _retention_ms=Versions(Constant(INT64, -1), 2, 4),
        topics=rows(
            name=STRING,
            partitions=rows(partition=INT32, offset=INT64, leader_epoch=since(6, INT32), metadata=NULLABLE_STRING),
        ),
    ),
    Message(
        8,
        OffsetCommitResponse,
        _throttle_ms=since(3, INT32),
        topics=rows(
            OffsetCommitTopicResult,
            name=STRING,
            partitions=rows(OffsetCommitPartitionResult, partition=INT32, error=ERROR),
        ),
    ),
)
"""Writes an OffsetCommitRequest, reads an OffsetCommitResponse."""

DELETE_GROUPS: Final = ClientApi(ApiKey.DELETE_GROUPS, 0, 2, DeleteGroupsRequest, DeleteGroupsResponse)
