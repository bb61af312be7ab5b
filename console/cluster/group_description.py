"""One group with its members, of any protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.clients.errors import RefusedError, reason_of
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.connection import Connection
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
from barnabas.protocol.messages.groups.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)

GROUP_KEY: Final = 0
"""Kind of key of FindCoordinator."""

_ABSENT: Final = frozenset({ErrorCode.GROUP_ID_NOT_FOUND})


class Member(NamedTuple):
    """One member. `assignment` is texts: partitions by topic, or a sentence where they cannot be told."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: Sequence[str]


class Description(NamedTuple):
    """A group; `assignor` is empty until the group has one."""

    state: str
    assignor: str
    members: Sequence[Member]


async def describe_group(kafka: Cluster, group: str) -> Description:
    """Ask the group's coordinator. Raises RefusedError for an unknown group, ClientError."""
    connection = await kafka.coordinator(GROUP_KEY, group, is_sought_again=True)
    if connection.version_of(ApiKey.CONSUMER_GROUP_DESCRIBE) is not None:
        answer: ConsumerGroupDescribeResponse = await connection.request(
            ConsumerGroupDescribeRequest(group_ids=[group])
        )
        (consumers,) = answer.groups
        if consumers.error is ErrorCode.NONE:
            members = [
                Member(
                    each.member_id,
                    each.instance_id,
                    each.client_id,
                    each.client_host.removeprefix("/"),
                    [_partitions(topic.topic, topic.partitions) for topic in each.assignment.topics],
                )
                for each in consumers.members
            ]
            return Description(consumers.state, consumers.assignor, members)
        if consumers.error not in _ABSENT:
            raise RefusedError(consumers.error, consumers.message or reason_of(consumers.error))
    shared = await _share_group(connection, group)
    if shared is not None:
        return shared
    classic: DescribeGroupsResponse = await connection.request(DescribeGroupsRequest(groups=[group]))
    (found,) = classic.groups
    if found.error is not ErrorCode.NONE:
        raise RefusedError(found.error, found.message or f"there is no group {group!r}")
    is_consumers = found.protocol_type == CONSUMER
    return Description(found.state, found.protocol, [_member(each, is_consumers) for each in found.members])


async def _share_group(connection: Connection, group: str) -> Description | None:
    """Return a share group; None if it is none, or if the cluster serves none."""
    if connection.version_of(ApiKey.SHARE_GROUP_DESCRIBE) is None:
        return None
    answer: ShareGroupDescribeResponse = await connection.request(ShareGroupDescribeRequest(group_ids=[group]))
    (found,) = answer.groups
    if found.error in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
        return None
    if found.error is not ErrorCode.NONE:
        raise RefusedError(found.error, found.message or reason_of(found.error))
    members = [
        Member(
            each.member_id,
            None,
            each.client_id,
            each.client_host.removeprefix("/"),
            [_partitions(topic.topic, topic.partitions) for topic in each.assignment.topics],
        )
        for each in found.members
    ]
    return Description(found.state, found.assignor, members)


def _member(found: DescribedMember, is_consumers: bool) -> Member:
    assignment = ["not a consumer's: the assignment has a format of its own"]
    if is_consumers:
        try:
            by_topic: dict[str, list[int]] = {}
            for topic, number in decode_assigned(found.assignment):
                by_topic.setdefault(topic, []).append(number)
            assignment = [_partitions(topic, numbers) for topic, numbers in by_topic.items()]
        except DecodeError as error:
            assignment = [f"the assignment cannot be read: {error}"]
    return Member(
        found.member_id, found.group_instance_id, found.client_id, found.client_host.removeprefix("/"), assignment
    )


def _partitions(topic: str, numbers: Sequence[int]) -> str:
    return f"{topic}: {', '.join(map(str, sorted(numbers)))}"
