"""ConsumerGroupDescribe (69), versions 0-1: groups of the consumer protocol with their members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.kafka.client.fields import ERROR
from barnabas.protocol.kafka.groups import consumer_group_describe
from barnabas.protocol.kafka.schema import (
    INT8,
    INT32,
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
from barnabas.protocol.messages.groups.consumer_group_describe import (
    AssignedTopic,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescription,
    ConsumerGroupMemberDescription,
)

_CLASSIC_MEMBER: Final = 0


def _topics(topics: list[AssignedTopic]) -> Sequence[AssignedTopic]:
    return topics


def _member(type: int = -1, **fields: object) -> ConsumerGroupMemberDescription:
    return ConsumerGroupMemberDescription(**fields, is_classic=type == _CLASSIC_MEMBER)  # type: ignore[arg-type]


def _response(groups: list[ConsumerGroupDescription]) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(groups)


_ASSIGNMENT: Final = Struct(_topics, topics=rows(AssignedTopic, topic_id=UUID, topic=STRING, partitions=Array(INT32)))

CONSUMER_GROUP_DESCRIBE: Final = ClientApi(
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    0,
    1,
    consumer_group_describe.REQUEST,
    Message(
        0,
        _response,
        _throttle_ms=INT32,
        groups=rows(
            ConsumerGroupDescription,
            error=ERROR,
            message=NULLABLE_STRING,
            group_id=STRING,
            state=STRING,
            group_epoch=INT32,
            assignment_epoch=INT32,
            assignor=STRING,
            members=rows(
                _member,
                member_id=STRING,
                instance_id=NULLABLE_STRING,
                rack_id=NULLABLE_STRING,
                member_epoch=INT32,
                client_id=STRING,
                client_host=STRING,
                topic_names=Array(STRING),
                topic_regex=NULLABLE_STRING,
                assignment=_ASSIGNMENT,
                target=_ASSIGNMENT,
                type=since(1, INT8),
            ),
            authorized_operations=INT32,
        ),
    ),
)
"""Writes a ConsumerGroupDescribeRequest, reads a ConsumerGroupDescribeResponse."""
