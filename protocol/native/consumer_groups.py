"""describe_consumer_groups (69): groups of the consumer protocol with their members.

request   groups [group]
response  groups [[group, error, message, state, group_epoch, assignment_epoch, assignor, members]]

members  := [[member_id, instance_id, rack_id, member_epoch, client_id, client_host, is_classic bool,
            subscribed topics [name], subscribed regex, current topics, target topics]]
topics   := [[topic_id, name, [partition]]]
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.messages.groups.consumer_group_describe import (
    CLASSIC_MEMBER,
    CONSUMER_MEMBER,
    AssignedTopic,
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescription,
    ConsumerGroupMemberDescription,
)
from barnabas.protocol.native.fields import (
    INT32,
    array,
    boolean,
    error_code,
    field,
    integer,
    long_text,
    optional_text,
    row,
    text,
)
from barnabas.protocol.uuids import parse_uuid, uuid_text


def encode_describe(request: ConsumerGroupDescribeRequest) -> dict[str, Any]:
    """The groups."""
    return {"groups": list(request.group_ids)}


def decode_describe(body: dict[str, Any]) -> ConsumerGroupDescribeRequest:
    """Raises DecodeError, naming the field."""
    group_ids = [text(each, "group") for each in array(field(body, "groups"), "groups")]
    return ConsumerGroupDescribeRequest(group_ids=group_ids)


def encode_describe_response(response: ConsumerGroupDescribeResponse) -> dict[str, Any]:
    """A row for each group."""
    return {
        "groups": [
            [
                each.group_id,
                int(each.error),
                each.message,
                each.state,
                each.group_epoch,
                each.assignment_epoch,
                each.assignor,
                [_member_row(member) for member in each.members],
            ]
            for each in response.groups
        ]
    }


def decode_describe_response(body: dict[str, Any]) -> ConsumerGroupDescribeResponse:
    """Raises DecodeError, naming the field."""
    groups = []
    for entry in array(field(body, "groups"), "groups"):
        group, error, message, state, group_epoch, assignment_epoch, assignor, members = row(entry, "groups[]", 8)
        groups.append(
            ConsumerGroupDescription(
                group_id=text(group, "group"),
                state=text(state, "state"),
                group_epoch=integer(group_epoch, "group_epoch", INT32),
                assignment_epoch=integer(assignment_epoch, "assignment_epoch", INT32),
                assignor=text(assignor, "assignor"),
                members=[_member(each) for each in array(members, "members")],
                error=error_code(error, "error"),
                message=long_text(message, "message"),
            )
        )
    return ConsumerGroupDescribeResponse(groups=groups)


def _member_row(member: ConsumerGroupMemberDescription) -> list[Any]:
    return [
        member.member_id,
        member.instance_id,
        member.rack_id,
        member.member_epoch,
        member.client_id,
        member.client_host,
        member.member_type == CLASSIC_MEMBER,
        list(member.topic_names),
        member.topic_regex,
        _topic_rows(member.assignment.topics),
        _topic_rows(member.target.topics),
    ]


def _member(entry: Any) -> ConsumerGroupMemberDescription:
    member_id, instance_id, rack_id, epoch, client_id, host, is_classic, names, regex, has, shall_have = row(
        entry, "members[]", 11
    )
    return ConsumerGroupMemberDescription(
        member_id=text(member_id, "member_id"),
        instance_id=optional_text(instance_id, "instance_id"),
        rack_id=optional_text(rack_id, "rack_id"),
        member_epoch=integer(epoch, "member_epoch", INT32),
        client_id=text(client_id, "client_id"),
        client_host=text(host, "client_host"),
        topic_names=[text(each, "topic") for each in array(names, "topics")],
        topic_regex=optional_text(regex, "regex"),
        assignment=Assignment(topics=_topics(has)),
        target=Assignment(topics=_topics(shall_have)),
        member_type=CLASSIC_MEMBER if boolean(is_classic, "is_classic") else CONSUMER_MEMBER,
    )


def _topic_rows(topics: Any) -> list[list[Any]]:
    return [[uuid_text(each.topic_id), each.topic, list(each.partitions)] for each in topics]


def _topics(rows: Any) -> list[AssignedTopic]:
    found = []
    for entry in array(rows, "topics"):
        topic_id, name, numbers = row(entry, "topics[]", 3)
        partitions = [integer(each, "partition", INT32) for each in array(numbers, "partitions")]
        key = parse_uuid(text(topic_id, "topic_id"))
        found.append(AssignedTopic(topic_id=key, topic=text(name, "topic"), partitions=partitions))
    return found
