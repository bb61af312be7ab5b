"""ConsumerGroupDescribe (69), versions 0 and 1: 1 says of each member whether it speaks the classic protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.messages.groups.consumer_group_describe import (
    AssignedTopic,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescription,
    ConsumerGroupMemberDescription,
)

_API: Final = "consumer_group_describe"
_CLASSIC_MEMBER: Final = 0
_CONSUMER_MEMBER: Final = 1


def decode_request(version: int, body: memoryview) -> ConsumerGroupDescribeRequest:
    """Raises DecodeError."""
    request = entities.read_request(_API, version, body)
    return ConsumerGroupDescribeRequest(request.group_ids, request.include_authorized_operations)


def encode_response(version: int, response: ConsumerGroupDescribeResponse) -> bytes:
    """A row for each group."""
    schema = entities.response_schema(_API, version)
    groups = tuple(
        schema.DescribedGroup(
            error_code=group.error,
            error_message=entities.sentence(group.message),
            group_id=group.group_id,
            group_state=group.state,
            group_epoch=group.group_epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=group.assignor,
            members=tuple(_member(schema, each) for each in group.members),
            authorized_operations=group.authorized_operations,
        )
        for group in response.groups
    )
    return entities.write(schema.ConsumerGroupDescribeResponse(throttle_time=entities.NO_THROTTLE, groups=groups))


def encode_error(version: int, request: ConsumerGroupDescribeRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every group."""
    groups = [ConsumerGroupDescription(group_id, error=code, message=message) for group_id in request.group_ids]
    return encode_response(version, ConsumerGroupDescribeResponse(groups))


def _member(schema: Any, member: ConsumerGroupMemberDescription) -> Any:
    return entities.make(
        schema.Member,
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        assignment=_assignment(schema, member.assignment),
        target_assignment=_assignment(schema, member.target),
        member_type=_CLASSIC_MEMBER if member.is_classic else _CONSUMER_MEMBER,
    )


def _assignment(schema: Any, topics: Sequence[AssignedTopic]) -> Any:
    return schema.Assignment(
        topic_partitions=tuple(
            schema.TopicPartitions(
                topic_id=entities.uuid_of(each.topic_id), topic_name=each.topic, partitions=tuple(each.partitions)
            )
            for each in topics
        )
    )
