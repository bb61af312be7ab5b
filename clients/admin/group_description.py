"""Descriptions of groups of all protocols, with the assignments of the members of consumer groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import ClientError, RefusedError, reason_of
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.connection import Connection
from barnabas.clients.network.retrying import with_retries
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.groups.consumer_protocol import CONSUMER, decode_assigned
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from barnabas.protocol.messages.groups.describe_groups import (
    DescribedMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from barnabas.protocol.messages.groups.find_coordinator import GROUP_KEY
from barnabas.protocol.messages.groups.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from barnabas.protocol.topic_partition import TopicPartition

_DEAD: Final = "Dead"
_NOT_CONSUMERS: Final = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})
"""The group is not there, or not of this protocol; the second where the broker has the protocol disabled."""


@dataclass(frozen=True, slots=True)
class GroupMemberDescription:
    """One member; `group_instance_id` is None for a dynamic one. No `partitions` while the group rebalances."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    partitions: Sequence[TopicPartition]


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """`state` has Kafka's name; `assignor` is empty until the group has agreed on one."""

    group_id: str
    state: str
    assignor: str
    members: Sequence[GroupMemberDescription]


async def describe_group(cluster: Cluster, config: ClientConfig, group: str) -> GroupDescription:
    """Describe a group of any protocol. Raises RefusedError for an unknown group."""

    async def attempt() -> GroupDescription:
        connection = await cluster.coordinator(GROUP_KEY, group)
        request = DescribeGroupsRequest(groups=[group])
        response: DescribeGroupsResponse = await connection.request(request)
        (found,) = response.groups
        # Unknown, or of another protocol; "Dead" before version 6.
        if found.error is ErrorCode.GROUP_ID_NOT_FOUND or found.state == _DEAD:
            return await _describe_consumer_group(connection, group)
        if found.error is not ErrorCode.NONE:
            raise RefusedError(found.error, found.message or f"group {group!r} cannot be described")
        is_consumers = found.protocol_type == CONSUMER
        members = [_member(group, each, is_consumers=is_consumers) for each in found.members]
        return GroupDescription(group, found.state, found.protocol, members)

    return await with_retries(config, ApiKey.DESCRIBE_GROUPS.label, attempt, coordinated_by=cluster)


async def _describe_consumer_group(connection: Connection, group: str) -> GroupDescription:
    request = ConsumerGroupDescribeRequest(group_ids=[group])
    if connection.version_of(request.api_key) is None:
        raise _unknown(group)
    response: ConsumerGroupDescribeResponse = await connection.request(request)
    (found,) = response.groups
    if found.error in _NOT_CONSUMERS:
        return await _describe_streams_group(connection, group)
    if found.error is not ErrorCode.NONE:
        raise RefusedError(found.error, found.message or reason_of(found.error))
    members = [
        GroupMemberDescription(
            each.member_id,
            each.instance_id,
            each.client_id,
            each.client_host.removeprefix("/"),
            [TopicPartition(topic.topic, number) for topic in each.assignment.topics for number in topic.partitions],
        )
        for each in found.members
    ]
    return GroupDescription(group, found.state, found.assignor, members)


async def _describe_streams_group(connection: Connection, group: str) -> GroupDescription:
    """Describe a streams group, whose members have tasks and no partitions of their own."""
    request = StreamsGroupDescribeRequest(group_ids=[group])
    if connection.version_of(request.api_key) is None:
        raise _unknown(group)
    response: StreamsGroupDescribeResponse = await connection.request(request)
    (found,) = response.groups
    if found.error in _NOT_CONSUMERS:
        raise _unknown(group)
    if found.error is not ErrorCode.NONE:
        raise RefusedError(found.error, found.message or reason_of(found.error))
    members = [
        GroupMemberDescription(each.member_id, each.instance_id, each.client_id, each.client_host.removeprefix("/"), ())
        for each in found.members
    ]
    return GroupDescription(group, found.state, "", members)


def _unknown(group: str) -> RefusedError:
    return RefusedError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group!r}")


def _member(group: str, found: DescribedMember, *, is_consumers: bool) -> GroupMemberDescription:
    """Convert a classic member. Assignments of other protocol types (Kafka Connect) are not partitions: left out."""
    try:
        partitions = decode_assigned(found.assignment) if is_consumers else ()
    except DecodeError as error:
        raise ClientError(f"group {group!r}: the assignment of {found.member_id} cannot be decoded: {error}") from error
    return GroupMemberDescription(
        found.member_id, found.group_instance_id, found.client_id, found.client_host.removeprefix("/"), partitions
    )
