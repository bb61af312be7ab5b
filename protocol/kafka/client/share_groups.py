"""ShareGroupDescribe (77), version 1, and DescribeShareGroupOffsets (90), versions 0-1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.kafka.client.fields import ERROR
from barnabas.protocol.kafka.groups import describe_share_group_offsets, share_group_describe
from barnabas.protocol.kafka.schema import (
    INT32,
    INT64,
    NULLABLE_STRING,
    STRING,
    UUID,
    Array,
    Message,
    Struct,
    rows,
    since,
)
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.consumer_group_describe import AssignedTopic
from barnabas.protocol.messages.groups.share_group_describe import (
    ShareGroupDescribeResponse,
    ShareGroupDescription,
    ShareGroupMemberDescription,
)
from barnabas.protocol.messages.groups.share_group_offsets import (
    DescribedGroupOffsets,
    DescribedOffset,
    DescribedTopicOffsets,
    DescribeShareGroupOffsetsResponse,
)


def _topics(topics: list[AssignedTopic]) -> Sequence[AssignedTopic]:
    return topics


_ASSIGNMENT: Final = Struct(_topics, topics=rows(AssignedTopic, topic_id=UUID, topic=STRING, partitions=Array(INT32)))

SHARE_GROUP_DESCRIBE: Final = ClientApi(
    ApiKey.SHARE_GROUP_DESCRIBE,
    1,
    1,
    share_group_describe.REQUEST,
    Message(
        0,
        ShareGroupDescribeResponse,
        _throttle_ms=INT32,
        groups=rows(
            ShareGroupDescription,
            error=ERROR,
            message=NULLABLE_STRING,
            group_id=STRING,
            state=STRING,
            group_epoch=INT32,
            assignment_epoch=INT32,
            assignor=STRING,
            members=rows(
                ShareGroupMemberDescription,
                member_id=STRING,
                rack_id=NULLABLE_STRING,
                member_epoch=INT32,
                client_id=STRING,
                client_host=STRING,
                topic_names=Array(STRING),
                assignment=_ASSIGNMENT,
            ),
            authorized_operations=INT32,
        ),
    ),
)
"""Writes a ShareGroupDescribeRequest, reads a ShareGroupDescribeResponse."""

DESCRIBE_SHARE_GROUP_OFFSETS: Final = ClientApi(
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    0,
    1,
    describe_share_group_offsets.REQUEST,
    Message(
        0,
        DescribeShareGroupOffsetsResponse,
        _throttle_ms=INT32,
        groups=rows(
            DescribedGroupOffsets,
            group_id=STRING,
            topics=rows(
                DescribedTopicOffsets,
                topic=STRING,
                topic_id=UUID,
                partitions=rows(
                    DescribedOffset,
                    partition=INT32,
                    start_offset=INT64,
                    leader_epoch=INT32,
                    lag=since(1, INT64),
                    error=ERROR,
                    message=NULLABLE_STRING,
                ),
            ),
            error=ERROR,
            message=NULLABLE_STRING,
        ),
    ),
)
"""Writes a DescribeShareGroupOffsetsRequest, reads a DescribeShareGroupOffsetsResponse."""
