"""Groups of consumers and what they have committed, for the admin and the consumer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import RefusedError
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.retrying import ask_any, with_retries
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from barnabas.protocol.messages.groups.offset_commit import (
    NO_GENERATION,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopic,
)
from barnabas.protocol.messages.groups.offset_fetch import (
    OffsetFetchGroup,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopic,
)
from barnabas.protocol.topic_partition import TopicPartition


class Committer(NamedTuple):
    """Who commits: a member of the group's generation, or (as it stands here) somebody who is none."""

    generation: int = NO_GENERATION
    member_id: str = ""
    group_instance_id: str | None = None


NO_MEMBER: Final = Committer()


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """Where a group is in a partition: `offset` is that of the next record that it will read.

    `leader_epoch` is that of the last record that it read, -1 unknown; `metadata` whatever it keeps there.
    """

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


async def commit_offsets(
    cluster: Cluster,
    config: ClientConfig,
    group: str,
    offsets: Mapping[TopicPartition, CommittedOffset],
    *,
    committer: Committer = NO_MEMBER,
    once: bool = False,
) -> None:
    """Commit for one of a group's members, or a group without any. Raises RefusedError, naming the first partition.

    Lost connections and retriable refusals are tried again for api_timeout_ms, unless `once`: a commit may be made
    twice.
    """
    topics: dict[str, list[OffsetCommitPartition]] = {}
    for (topic, partition), at in offsets.items():
        topics.setdefault(topic, []).append(OffsetCommitPartition(partition, at.offset, at.leader_epoch, at.metadata))
    request = OffsetCommitRequest(
        group, [OffsetCommitTopic(name, entries) for name, entries in topics.items()], *committer
    )

    async def attempt() -> None:
        connection = await cluster.any_connection()
        response: OffsetCommitResponse = await connection.request(ApiKey.OFFSET_COMMIT, request)
        for result in response.topics:
            for entry in result.partitions:
                if entry.error is not ErrorCode.NONE:
                    refused = TopicPartition(result.name, entry.partition)
                    raise RefusedError.of_partition(refused, entry.error, None)

    if once:
        await attempt()
    else:
        await with_retries(config, ApiKey.OFFSET_COMMIT.label, attempt)


async def fetch_offsets(
    cluster: Cluster, config: ClientConfig, group: str, partitions: Iterable[TopicPartition] | None
) -> dict[TopicPartition, CommittedOffset]:
    """What a group has committed in these partitions, or in all; those without an offset are left out.

    Raises RefusedError; retriable refusals (the offsets are being loaded) are tried again for api_timeout_ms.
    """
    topics: list[OffsetFetchTopic] | None = None
    if partitions is not None:
        by_topic: dict[str, list[int]] = {}
        for topic, partition in partitions:
            by_topic.setdefault(topic, []).append(partition)
        topics = [OffsetFetchTopic(name, numbers) for name, numbers in by_topic.items()]
    request = OffsetFetchRequest([OffsetFetchGroup(group, topics)])

    async def attempt() -> dict[TopicPartition, CommittedOffset]:
        connection = await cluster.any_connection()
        response: OffsetFetchResponse = await connection.request(ApiKey.OFFSET_FETCH, request)
        (answered,) = response.groups
        if answered.error is not ErrorCode.NONE:
            raise RefusedError(answered.error, f"the offsets of group {group!r} cannot be fetched")
        found = {}
        for topic in answered.topics:
            for entry in topic.partitions:
                topic_partition = TopicPartition(topic.name, entry.partition)
                if entry.error is not ErrorCode.NONE:
                    raise RefusedError.of_partition(topic_partition, entry.error, None)
                if entry.offset >= 0:
                    found[topic_partition] = CommittedOffset(entry.offset, entry.leader_epoch, entry.metadata)
        return found

    return await with_retries(config, ApiKey.OFFSET_FETCH.label, attempt)


async def list_groups(cluster: Cluster, config: ClientConfig) -> list[ListedGroup]:
    """All groups by name."""
    response: ListGroupsResponse = await ask_any(cluster, config, ApiKey.LIST_GROUPS, ListGroupsRequest())
    return sorted(response.groups, key=lambda group: group.group_id)


async def delete_group(cluster: Cluster, config: ClientConfig, group: str) -> None:
    """Delete a group without members, with its offsets. Raises RefusedError: it is unknown, or has members."""

    async def attempt() -> None:
        connection = await cluster.any_connection()
        response: DeleteGroupsResponse = await connection.request(ApiKey.DELETE_GROUPS, DeleteGroupsRequest([group]))
        (result,) = response.results
        if result.error is ErrorCode.GROUP_ID_NOT_FOUND:
            raise RefusedError(result.error, f"there is no group {group!r}")
        if result.error is ErrorCode.NON_EMPTY_GROUP:
            raise RefusedError(result.error, f"group {group!r} has members: stop them first")
        if result.error is not ErrorCode.NONE:
            raise RefusedError(result.error, f"group {group!r} cannot be deleted")

    await with_retries(config, ApiKey.DELETE_GROUPS.label, attempt)
