"""commit_offsets (8), fetch_offsets (9), list_groups (16), delete_groups (42): groups and their committed offsets.

commit_offsets  request   group, topics [[name, [[partition, offset, leader_epoch, metadata]]]], generation, member_id,
                          instance_id
                response  topics [[name, [[partition, error]]]]
fetch_offsets   request   group, topics [[name, [partition]]] or nil (all committed offsets),
                          require_stable bool: refuse offsets that an open transaction may change
                response  error, topics [[name, [[partition, error, offset, leader_epoch, metadata]]]]
list_groups     request   states [str], types [str]
                response  groups [[group, protocol_type, state, type]]
delete_groups   request   groups [group]
                response  groups [[group, error]]
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.messages.groups.groups import (
    DeleteGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from barnabas.protocol.messages.groups.offset_commit import (
    NO_GENERATION,
    OffsetCommitPartition,
    OffsetCommitPartitionResult,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopic,
    OffsetCommitTopicResult,
)
from barnabas.protocol.messages.groups.offset_fetch import (
    OffsetFetchGroup,
    OffsetFetchGroupResult,
    OffsetFetchPartitionResult,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopic,
    OffsetFetchTopicResult,
)
from barnabas.protocol.native.fields import (
    INT32,
    INT64,
    array,
    boolean,
    error_code,
    field,
    integer,
    optional_text,
    partition_number,
    row,
    text,
    topics_of,
)

_BY_NAME: Final = 9
"""The last version of these requests in Kafka's protocol that names topics."""


def encode_commit(request: OffsetCommitRequest) -> dict[str, Any]:
    """The body of a commit."""
    return {
        "group": request.group_id,
        "generation": request.generation,
        "member_id": request.member_id,
        "instance_id": request.group_instance_id,
        "topics": [
            [topic.name, [[p.partition, p.offset, p.leader_epoch, p.metadata] for p in topic.partitions]]
            for topic in request.topics
        ],
    }


def decode_commit(body: dict[str, Any]) -> OffsetCommitRequest:
    """Raises DecodeError, naming the field."""
    topics = topics_of(field(body, "topics"), OffsetCommitTopic, _offset)
    return OffsetCommitRequest(
        version=_BY_NAME,
        group_id=text(field(body, "group"), "group"),
        topics=topics,
        generation=integer(field(body, "generation", NO_GENERATION), "generation", INT32),
        member_id=text(field(body, "member_id", ""), "member_id"),
        group_instance_id=optional_text(field(body, "instance_id", None), "instance_id"),
    )


def encode_commit_response(response: OffsetCommitResponse) -> dict[str, Any]:
    """A code for each partition."""
    return {
        "topics": [[topic.name, [[p.partition, int(p.error)] for p in topic.partitions]] for topic in response.topics]
    }


def decode_commit_response(body: dict[str, Any]) -> OffsetCommitResponse:
    """Raises DecodeError, naming the field."""
    return OffsetCommitResponse(topics=topics_of(field(body, "topics"), OffsetCommitTopicResult, _committed))


def encode_fetch(request: OffsetFetchRequest) -> dict[str, Any]:
    """The body of a fetch: one group."""
    (group,) = request.asked_groups
    topics = None if group.topics is None else [[topic.name, list(topic.partitions)] for topic in group.topics]
    return {"group": group.group_id, "topics": topics, "require_stable": request.require_stable}


def decode_fetch(body: dict[str, Any]) -> OffsetFetchRequest:
    """Raises DecodeError, naming the field."""
    rows = field(body, "topics", None)
    topics = None if rows is None else topics_of(rows, OffsetFetchTopic, partition_number)
    require_stable = boolean(field(body, "require_stable", False), "require_stable")
    return OffsetFetchRequest(
        version=_BY_NAME,
        groups=[OffsetFetchGroup(group_id=text(field(body, "group"), "group"), topics=topics)],
        require_stable=require_stable,
    )


def encode_fetch_response(response: OffsetFetchResponse) -> dict[str, Any]:
    """The group's offsets."""
    (group,) = response.results
    return {
        "group": group.group_id,
        "error": int(group.error),
        "topics": [
            [
                topic.name,
                [[p.partition, int(p.error), p.offset, p.leader_epoch, p.metadata or ""] for p in topic.partitions],
            ]
            for topic in group.topics
        ],
    }


def decode_fetch_response(body: dict[str, Any]) -> OffsetFetchResponse:
    """Raises DecodeError, naming the field."""
    topics = topics_of(field(body, "topics"), OffsetFetchTopicResult, _found)
    group = text(field(body, "group"), "group")
    return OffsetFetchResponse(
        groups=[OffsetFetchGroupResult(group_id=group, topics=topics, error=error_code(field(body, "error"), "error"))]
    )


def encode_list(request: ListGroupsRequest) -> dict[str, Any]:
    """The filters."""
    return {"states": list(request.states), "types": list(request.types)}


def decode_list(body: dict[str, Any]) -> ListGroupsRequest:
    """Raises DecodeError, naming the field."""
    return ListGroupsRequest(
        states=_texts(field(body, "states", []), "states"), types=_texts(field(body, "types", []), "types")
    )


def encode_list_response(response: ListGroupsResponse) -> dict[str, Any]:
    """A row for each group."""
    return {"groups": [[each.group_id, each.protocol_type, each.state, each.group_type] for each in response.groups]}


def decode_list_response(body: dict[str, Any]) -> ListGroupsResponse:
    """Raises DecodeError, naming the field."""
    groups = []
    for entry in array(field(body, "groups"), "groups"):
        group, protocol_type, state, group_type = row(entry, "groups[]", 4)
        groups.append(
            ListedGroup(
                group_id=text(group, "group"),
                protocol_type=text(protocol_type, "protocol_type"),
                state=text(state, "state"),
                type=text(group_type, "type").lower(),
            )
        )
    return ListGroupsResponse(groups=groups)


def encode_delete(request: DeleteGroupsRequest) -> dict[str, Any]:
    """The groups."""
    return {"groups": list(request.group_ids)}


def decode_delete(body: dict[str, Any]) -> DeleteGroupsRequest:
    """Raises DecodeError, naming the field."""
    return DeleteGroupsRequest(group_ids=_texts(field(body, "groups"), "groups"))


def encode_delete_response(response: DeleteGroupsResponse) -> dict[str, Any]:
    """A code for each group."""
    return {"groups": [[each.group_id, int(each.error)] for each in response.results]}


def decode_delete_response(body: dict[str, Any]) -> DeleteGroupsResponse:
    """Raises DecodeError, naming the field."""
    results = []
    for entry in array(field(body, "groups"), "groups"):
        group, error = row(entry, "groups[]", 2)
        results.append(DeleteGroupResult(group_id=text(group, "group"), error=error_code(error, "error")))
    return DeleteGroupsResponse(results=results)


def _texts(values: Any, name: str) -> list[str]:
    return [text(each, name) for each in array(values, name)]


def _offset(entry: Any) -> OffsetCommitPartition:
    partition, offset, leader_epoch, metadata = row(entry, "partitions[]", 4)
    return OffsetCommitPartition(
        partition=integer(partition, "partition", INT32),
        offset=integer(offset, "offset", INT64),
        leader_epoch=integer(leader_epoch, "leader_epoch", INT32),
        metadata=optional_text(metadata, "metadata"),
    )


def _committed(entry: Any) -> OffsetCommitPartitionResult:
    partition, error = row(entry, "partitions[]", 2)
    return OffsetCommitPartitionResult(integer(partition, "partition", INT32), error_code(error, "error"))


def _found(entry: Any) -> OffsetFetchPartitionResult:
    partition, error, offset, leader_epoch, metadata = row(entry, "partitions[]", 5)
    return OffsetFetchPartitionResult(
        integer(partition, "partition", INT32),
        error=error_code(error, "error"),
        offset=integer(offset, "offset", INT64),
        leader_epoch=integer(leader_epoch, "leader_epoch", INT32),
        metadata=text(metadata, "metadata"),
    )
