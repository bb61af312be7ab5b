"""The groups of the source: which match a mirror's patterns, and their committed offsets.

ListGroups answers the groups that a broker coordinates and this client may DESCRIBE, so no coordinator is looked up.
OffsetFetch without a list of topics answers the offsets of topics that this client may DESCRIBE, for groups of both
protocols alike; offsets of open transactions are not among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.clients.errors import ClientError, RefusedError, reason_of
from barnabas.config.regex import Regex, RegexError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.groups import ListGroupsRequest, ListGroupsResponse
from barnabas.protocol.messages.groups.offset_fetch import (
    GROUPS_FROM,
    OffsetFetchGroup,
    OffsetFetchGroupResult,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from barnabas.protocol.topic_name import INTERNAL_PREFIX
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.clients.network.cluster import Cluster

GROUPS_AT_ONCE: Final = 50
"""Groups of one OffsetFetch request, which limits the size of an answer."""

_SHARE: Final = "Share"
"""Share groups have no committed offsets."""


class GroupOffset(NamedTuple):
    """A committed offset. `leader_epoch` is -1 if the client that committed it did not know that."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


Offsets = Mapping[TopicPartition, GroupOffset]


class SourceGroups:
    """Requests about groups, one after the other. Its methods raise ClientError."""

    def __init__(self, cluster: Cluster, patterns: Sequence[str]) -> None:
        """`patterns` are regular expressions that match whole group ids; an internal group matches none."""
        self._cluster = cluster
        self._patterns = patterns

    async def matching(self) -> dict[int, list[str]]:
        """Return the groups that match, by the node id of their coordinator.

        A broker whose groups are being loaded is left out.
        """
        await self._cluster.load([])
        patterns = [Regex(each) for each in self._patterns]
        found: dict[int, list[str]] = {}
        for node_id in self._cluster.node_ids:
            answer: ListGroupsResponse = await self._cluster.ask(node_id, ListGroupsRequest())
            if answer.error in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE):
                continue
            if answer.error is not ErrorCode.NONE:
                raise RefusedError(answer.error, f"list_groups at node {node_id}: {reason_of(answer.error)}")
            groups = [each.group_id for each in answer.groups if each.group_type != _SHARE]
            try:
                matching = sorted(each for each in groups if _matches(patterns, each))
            except RegexError as error:
                raise ClientError(str(error)) from error
            if matching:
                found[node_id] = matching
        return found

    async def offsets(self, node_id: int, group_ids: Sequence[str]) -> dict[str, Offsets | ErrorCode]:
        """Return the offsets of groups at their coordinator, or the error of a group."""
        connection = await self._cluster.connections.connect(node_id)
        at_once = GROUPS_AT_ONCE if (connection.version_of(ApiKey.OFFSET_FETCH) or 0) >= GROUPS_FROM else 1
        found: dict[str, Offsets | ErrorCode] = {}
        for start in range(0, len(group_ids), at_once):
            some = group_ids[start : start + at_once]
            request = OffsetFetchRequest.of_groups([OffsetFetchGroup(group_id=each, topics=None) for each in some])
            answer: OffsetFetchResponse = await connection.request(request)
            for group_id, result in zip(some, answer.results, strict=False):
                # Before version 8 the answer does not name its only group.
                found[result.group_id or group_id] = dict(_offsets(result)) if not result.error else result.error
        return found


def _matches(patterns: Sequence[Regex], group_id: str) -> bool:
    is_internal = group_id.startswith(INTERNAL_PREFIX)
    return bool(group_id) and not is_internal and any(each.matches(group_id) for each in patterns)


def _offsets(group: OffsetFetchGroupResult) -> Iterator[tuple[TopicPartition, GroupOffset]]:
    for topic in group.topics:
        for each in topic.partitions:
            if each.error is ErrorCode.NONE and each.offset >= 0:
                yield (
                    TopicPartition(topic.name, each.partition),
                    GroupOffset(each.offset, each.leader_epoch, each.metadata or ""),
                )
