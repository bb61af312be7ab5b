"""Offsets that a consumer group has committed: committing them and fetching them, for the consumer and the admin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import ClientError, RefusedError
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.retrying import with_retries
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.find_coordinator import GROUP_KEY
from barnabas.protocol.messages.groups.offset_commit import (
    NO_GENERATION,
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from barnabas.protocol.messages.groups.offset_fetch import (
    OffsetFetchGroup,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopic,
)
from barnabas.protocol.messages.transactions.txn_offset_commit import TxnOffsetCommitPartition, TxnOffsetCommitTopic
from barnabas.protocol.topic_partition import TopicPartition


class Committer(NamedTuple):
    """Identity under which offsets are committed. The defaults stand for a client that is not a member."""

    generation: int = NO_GENERATION
    member_id: str = ""
    group_instance_id: str | None = None


NO_MEMBER: Final = Committer()

_MESSAGES: Final = {
    ErrorCode.UNSTABLE_OFFSET_COMMIT: "a transaction that commits the group's offset has not ended; its timeout ends it"
}


class ConsumerGroupMetadata(NamedTuple):
    """A group and the identity under which one of its consumers commits offsets in a transaction."""

    group: str
    generation: int = NO_GENERATION
    member_id: str = ""
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """A group's position in a partition: `offset` is that of the next record to read.

    `leader_epoch` is that of the last record read, -1 if unknown; `metadata` is a string of the application's.
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
    """Commit for a group without members, or as the member `committer`. Raises RefusedError for the first partition.

    Lost connections and retriable errors are retried for api_timeout_ms, unless `once`: repeating a commit is harmless.
    """
    request = OffsetCommitRequest(
        group_id=group,
        generation=committer.generation,
        member_id=committer.member_id,
        group_instance_id=committer.group_instance_id,
        topics=offset_topics(offsets),
    )

    async def attempt() -> None:
        connection = await cluster.coordinator(GROUP_KEY, group)
        response: OffsetCommitResponse = await connection.request(request)
        for result in response.topics:
            for entry in result.partitions:
                if entry.error is not ErrorCode.NONE:
                    refused = TopicPartition(result.name, entry.partition)
                    raise RefusedError.of_partition(refused, entry.error, None)

    if not once:
        await with_retries(config, ApiKey.OFFSET_COMMIT.label, attempt, coordinated_by=cluster)
        return
    try:
        await attempt()
    except ClientError:
        cluster.forget_coordinators()
        raise


def offset_topics(offsets: Mapping[TopicPartition, CommittedOffset]) -> list[TxnOffsetCommitTopic]:
    """Return the offsets by topic, as the requests of a commit have them, in a transaction or not."""
    topics: dict[str, list[TxnOffsetCommitPartition]] = {}
    for (topic, partition), at in offsets.items():
        topics.setdefault(topic, []).append(
            TxnOffsetCommitPartition(
                partition=partition, offset=at.offset, leader_epoch=at.leader_epoch, metadata=at.metadata
            )
        )
    return [TxnOffsetCommitTopic(name=name, partitions=entries) for name, entries in topics.items()]


async def fetch_offsets(
    cluster: Cluster,
    config: ClientConfig,
    group: str,
    partitions: Iterable[TopicPartition] | None,
    *,
    require_stable: bool = False,
) -> dict[TopicPartition, CommittedOffset]:
    """Fetch a group's committed offsets of these partitions (None: all); partitions without one are left out.

    With `require_stable`, wait for the end of transactions that commit offsets in these partitions; without
    `partitions`, in those that have a committed offset already. Raises RefusedError. Retriable errors (the broker is
    loading the offsets, or one is unstable) are retried for api_timeout_ms.
    """
    topics: list[OffsetFetchTopic] | None = None
    if partitions is not None:
        by_topic: dict[str, list[int]] = {}
        for topic, partition in partitions:
            by_topic.setdefault(topic, []).append(partition)
        topics = [OffsetFetchTopic(name=name, partitions=numbers) for name, numbers in by_topic.items()]
    request = OffsetFetchRequest.of_groups(
        [OffsetFetchGroup(group_id=group, topics=topics)], require_stable=require_stable
    )

    async def attempt() -> dict[TopicPartition, CommittedOffset]:
        connection = await cluster.coordinator(GROUP_KEY, group)
        response: OffsetFetchResponse = await connection.request(request)
        (answered,) = response.results
        if answered.error is not ErrorCode.NONE:
            raise RefusedError(answered.error, f"the offsets of group {group!r} cannot be fetched")
        found = {}
        for topic in answered.topics:
            for entry in topic.partitions:
                topic_partition = TopicPartition(topic.name, entry.partition)
                if entry.error is not ErrorCode.NONE:
                    raise RefusedError.of_partition(topic_partition, entry.error, _MESSAGES.get(entry.error))
                if entry.offset >= 0:
                    found[topic_partition] = CommittedOffset(entry.offset, entry.leader_epoch, entry.metadata or "")
        return found

    return await with_retries(config, ApiKey.OFFSET_FETCH.label, attempt, coordinated_by=cluster)
