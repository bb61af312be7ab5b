"""Groups with their committed offsets and lag, asked of every broker of a cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from barnabas.clients.errors import ClientError, RefusedError, reason_of
from barnabas.clients.network.cluster import Cluster
from barnabas.console.cluster.snapshot import GroupFacts, TopicFacts
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from barnabas.protocol.messages.groups.offset_fetch import (
    GROUPS_FROM,
    OffsetFetchGroup,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from barnabas.protocol.topic_partition import TopicPartition

_GROUPS_A_REQUEST: Final = 50


async def list_groups(kafka: Cluster, topics: Mapping[str, TopicFacts], problems: list[str]) -> dict[str, GroupFacts]:
    """Ask for all groups, with their lag behind the ends of `topics`; sentences about failures go to `problems`."""
    ends = {
        TopicPartition(topic.name, each.partition): each.end_offset
        for topic in topics.values()
        for each in topic.partitions
    }
    by_node: dict[int, list[ListedGroup]] = defaultdict(list)
    for node_id in kafka.node_ids:
        try:
            answer: ListGroupsResponse = await kafka.ask(node_id, ListGroupsRequest())
        except ClientError as error:
            problems.append(f"groups of broker {node_id}: {error}")
            continue
        if answer.error is not ErrorCode.NONE:
            problems.append(f"groups of broker {node_id}: {reason_of(answer.error)}")
        by_node[node_id].extend(answer.groups)
    found: dict[str, GroupFacts] = {}
    for node_id, listed in by_node.items():
        for chunk in _chunks(listed, _GROUPS_A_REQUEST):
            try:
                committed = await _committed(kafka, node_id, [each.group_id for each in chunk])
            except ClientError as error:
                problems.append(f"committed offsets: {error}")
                committed = {}
            for each in chunk:
                offsets = committed.get(each.group_id, {})
                found[each.group_id] = GroupFacts(each, offsets, lag_of(offsets, ends))
    return dict(sorted(found.items()))


def lag_of(committed: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int | None]) -> int | None:
    """Sum of the records between committed offsets and the ends of their logs; None where none is known."""
    lags = []
    for partition, offset in committed.items():
        end = ends.get(partition)
        if end is not None:
            lags.append(max(0, end - offset))
    return sum(lags) if lags else None


async def _committed(kafka: Cluster, node_id: int, groups: Sequence[str]) -> dict[str, dict[TopicPartition, int]]:
    """All committed offsets of groups of one coordinator. Raises ClientError."""
    connection = await kafka.connections.connect(node_id)
    version = connection.version_of(ApiKey.OFFSET_FETCH)
    several = version is not None and version >= GROUPS_FROM
    found: dict[str, dict[TopicPartition, int]] = {}
    for chunk in [groups] if several else [[each] for each in groups]:
        request = OffsetFetchRequest.of_groups([OffsetFetchGroup(group_id=each, topics=None) for each in chunk])
        answer: OffsetFetchResponse = await connection.request(request)
        for group_id, result in zip(chunk, answer.results, strict=False):
            if result.error not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
                raise RefusedError(result.error, f"{group_id}: {reason_of(result.error)}")
            found[result.group_id or group_id] = {
                TopicPartition(topic.name, each.partition): each.offset
                for topic in result.topics
                for each in topic.partitions
                if each.error is ErrorCode.NONE and each.offset >= 0
            }
    return found


def _chunks(items: Sequence[ListedGroup], size: int) -> Iterator[Sequence[ListedGroup]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
