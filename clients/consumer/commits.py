"""The consumer's committed offsets: commits as a member of its group, and the offsets that the group has committed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from barnabas.clients.config import ConsumerConfig
from barnabas.clients.consumer.record_queue import RecordQueue
from barnabas.clients.errors import ClientError, CommitFailedError, RefusedError
from barnabas.clients.group_offsets import (
    NO_MEMBER,
    CommittedOffset,
    Committer,
    ConsumerGroupMetadata,
    commit_offsets,
    fetch_offsets,
)
from barnabas.clients.membership.consumer_membership import ConsumerMembership
from barnabas.clients.network.backoff import backoff_s
from barnabas.clients.network.cluster import Cluster
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups.join_group import NO_GENERATION
from barnabas.protocol.topic_partition import TopicPartition

_MEMBERSHIP_ENDED: Final = frozenset(
    {ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}
)


class OffsetCommits:
    """`membership` returns the consumer's current membership, None when its partitions are assigned by hand."""

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        queue: RecordQueue,
        membership: Callable[[], ConsumerMembership | None],
    ) -> None:
        self._cluster = cluster
        self._config = config
        self._queue = queue
        self._membership = membership

    def group(self) -> str:
        """The group's name. Raises ClientError if none is configured."""
        if self._config.group is None:
            raise ClientError("the consumer has no group: ConsumerConfig(group=...)")
        return self._config.group

    async def commit(self, offsets: Mapping[TopicPartition, int] | None) -> dict[TopicPartition, int]:
        """See Consumer.commit."""
        self.group()
        self._queue.ensure_open()
        committed = (
            self._queue.positions() if offsets is None else {TopicPartition(*each): at for each, at in offsets.items()}
        )
        for partition, offset in committed.items():
            if offset < 0:
                raise ValueError(f"{partition}: offset {offset} is negative")
        await self.send(committed, once=False, rebalance_ms=self._config.api_timeout_ms)
        return committed

    async def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """See Consumer.committed.

        Only stable offsets, whatever the isolation level, as Kafka's consumers: with an older one a loop that commits
        its offsets in transactions would read records twice after a restart.
        """
        found = await fetch_offsets(self._cluster, self._config, self.group(), partitions, require_stable=True)
        return {partition: at.offset for partition, at in found.items()}

    async def send(self, offsets: Mapping[TopicPartition, int], *, once: bool, rebalance_ms: int) -> None:
        """Commit these offsets. Raises as Consumer.commit does.

        Connection losses are retried unless `once`. A rebalance is waited for up to `rebalance_ms`: a cooperative
        member keeps partitions from one generation to the next, and may commit what it still has.
        """
        if not offsets:
            return
        group = self.group()
        wanted = {partition: CommittedOffset(offset) for partition, offset in offsets.items()}
        loop = asyncio.get_running_loop()
        deadline = loop.time() + rebalance_ms / 1000
        attempts = 0
        while True:
            committer = self._committer()
            try:
                await commit_offsets(self._cluster, self._config, group, wanted, committer=committer, once=once)
                return
            except RefusedError as error:
                attempts += 1
                pause_s = backoff_s(attempts, self._config.retry_backoff_ms, self._config.retry_backoff_max_ms)
                if not self._is_between_generations(committer, offsets, error.code):
                    if self._membership() is not None and error.code in _MEMBERSHIP_ENDED:
                        raise CommitFailedError(group, error.code) from error
                    raise
                if loop.time() + pause_s > deadline:
                    raise RefusedError(
                        ErrorCode.REBALANCE_IN_PROGRESS, f"group {group!r} rebalances: commit again after the next read"
                    ) from error
            await asyncio.sleep(pause_s)
            if not offsets.keys() <= self._queue.states.keys():
                # Another task's read gave some up. A commit in the new generation would undo their new owner's.
                raise RefusedError(
                    ErrorCode.REBALANCE_IN_PROGRESS,
                    f"group {group!r} rebalances: partitions were given up while their commit waited",
                )

    def group_metadata(self) -> ConsumerGroupMetadata:
        """See Consumer.group_metadata."""
        return ConsumerGroupMetadata(self.group(), *self._committer())

    def _is_between_generations(
        self, committer: Committer, offsets: Mapping[TopicPartition, int], code: ErrorCode
    ) -> bool:
        """Whether a commit was refused only because the group is rebalancing or has just done so."""
        membership = self._membership()
        if membership is None or not offsets.keys() <= self._queue.states.keys():
            return False
        if code is ErrorCode.ILLEGAL_GENERATION:
            return membership.generation != NO_GENERATION and (
                membership.is_joining or membership.generation != committer.generation
            )
        return code is ErrorCode.REBALANCE_IN_PROGRESS

    def _committer(self) -> Committer:
        membership = self._membership()
        if membership is None:
            return NO_MEMBER
        if membership.generation == NO_GENERATION:
            raise CommitFailedError(membership.group, ErrorCode.UNKNOWN_MEMBER_ID)
        return Committer(membership.generation, membership.member_id, self._config.group_instance_id)
