"""A share group's start offsets and lags: for `group describe`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from barnabas.clients.errors import RefusedError, reason_of
from barnabas.clients.network.cluster import Cluster
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups.find_coordinator import GROUP_KEY
from barnabas.protocol.messages.groups.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupMemberDescription,
)
from barnabas.protocol.messages.groups.share_group_offsets import (
    NO_OFFSET,
    DescribeShareGroupOffsetsRequest,
    GroupToDescribe,
)

if TYPE_CHECKING:
    from barnabas.clients.config import ClientConfig

SHARE_TYPE: Final = "Share"
"""Type of a share group in lists."""


async def described_share_group(config: ClientConfig, group: str) -> dict[str, Any]:
    """The group as JSON: state, members, and a row for each partition with state or a member.

    A row's start offset and lag are None before anything was delivered. Raises RefusedError, ClientError.
    """
    kafka = Cluster(config)
    try:
        coordinator = await kafka.coordinator(GROUP_KEY, group)
        answer = await coordinator.request(ShareGroupDescribeRequest(group_ids=[group]))
        request = DescribeShareGroupOffsetsRequest(groups=[GroupToDescribe(group_id=group, topics=None)])
        offsets = await coordinator.request(request)
    finally:
        await kafka.close()
    (found,), (known,) = answer.groups, offsets.groups
    for each in (found, known):
        if each.error is not ErrorCode.NONE:
            raise RefusedError(each.error, each.message or f"group {group!r}: {reason_of(each.error)}")
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for topic in known.topics:
        for at in topic.partitions:
            rows[topic.topic, at.partition] = _row(topic.topic, at.partition, at.start_offset, at.lag)
    for member in found.members:
        for assigned in member.assignment.topics:
            for number in assigned.partitions:
                row = rows.setdefault((assigned.topic, number), _row(assigned.topic, number, NO_OFFSET, NO_OFFSET))
                row["clients"].append(_client(member))
    return {
        "group": group,
        "type": SHARE_TYPE,
        "state": found.state,
        "members": [
            {
                "member_id": each.member_id,
                "client_id": each.client_id,
                "host": each.client_host.removeprefix("/"),
                "partitions": sum(len(topic.partitions) for topic in each.assignment.topics),
            }
            for each in found.members
        ],
        "partitions": [rows[key] for key in sorted(rows)],
    }


def _row(topic: str, partition: int, start_offset: int, lag: int) -> dict[str, Any]:
    return {
        "topic": topic,
        "partition": partition,
        "start": None if start_offset == NO_OFFSET else start_offset,
        "lag": None if lag == NO_OFFSET else lag,
        "clients": [],
    }


def _client(member: ShareGroupMemberDescription) -> str:
    return f"{member.client_id}@{member.client_host.removeprefix('/')}"
