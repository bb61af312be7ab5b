"""The consumer's calls about offsets: those of the log, and those that its group has committed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.clients.admin.groups import NO_MEMBER, CommittedOffset, Committer, commit_offsets, fetch_offsets
from barnabas.clients.config import ConsumerConfig
from barnabas.clients.consumer.fetcher import Fetcher
from barnabas.clients.consumer.offset_reset import isolation_level
from barnabas.clients.consumer.partition_state import NO_POSITION
from barnabas.clients.errors import ClientError, CommitFailedError, RefusedError
from barnabas.clients.membership.group_member import GroupMember
from barnabas.clients.network.backoff import backoff_s
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.offsets import ListedOffset, list_offsets
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.list_offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from barnabas.protocol.messages.groups.join_group import NO_GENERATION
from barnabas.protocol.topic_partition import TopicPartition

_NO_MEMBER_ANY_MORE: Final = frozenset(
    {ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}
)


class ConsumerOffsets:
    """Part of Consumer."""

    _fetcher: Fetcher | None
    _member: GroupMember | None

    def __init__(self, config: ConsumerConfig, cluster: Cluster) -> None:
        self.config = config
        self._cluster = cluster
        self._isolation = isolation_level(config)

    # of any partition, assigned or not

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each."""
        return await self._list_all(partitions, EARLIEST_TIMESTAMP)

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset after the last readable record of each."""
        return await self._list_all(partitions, LATEST_TIMESTAMP)

    async def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, ListedOffset | None]:
        """The first record of each at or after a time (ms since 1970); None where none is that late."""
        for partition, timestamp in timestamps_ms.items():
            if timestamp < 0:
                raise ValueError(f"{partition}: timestamp {timestamp} is negative")
        self._opened()
        listed = await list_offsets(self._cluster, self.config, timestamps_ms, self._isolation)
        return {partition: None if entry.offset < 0 else entry for partition, entry in listed.items()}

    # of ConsumerConfig.group

    async def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> dict[TopicPartition, int]:
        """Commit these offsets, or where every assigned partition is: behind the last record that was handed out.

        With auto_commit, reads do so by themselves. Returns what was committed. Raises ClientError without a group,
        CommitFailedError where the group has gone on without this member, RefusedError.
        """
        self._group()
        self._opened()
        committed = (
            self._positions() if offsets is None else {TopicPartition(*each): at for each, at in offsets.items()}
        )
        for partition, offset in committed.items():
            if offset < 0:
                raise ValueError(f"{partition}: offset {offset} is negative")
        await self._commit(committed)
        return committed

    async def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Where the group is in these; those in which it has committed nothing are left out. Raises as `commit`."""
        self._opened()
        return await self._committed(TopicPartition(*partition) for partition in partitions)

    async def _commit(
        self, offsets: Mapping[TopicPartition, int], *, once: bool = False, rebalance_ms: int | None = None
    ) -> None:
        """Commit as `commit` says. `once`: without a second attempt, but for `rebalance_ms` while the group rebalances.

        A cooperative member keeps partitions from one generation to the next, and may commit what it still has.
        """
        if not offsets:
            return
        group = self._group()
        wanted = {partition: CommittedOffset(offset) for partition, offset in offsets.items()}
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (self.config.api_timeout_ms if rebalance_ms is None else rebalance_ms) / 1000
        attempts = 0
        while True:
            committer = self._committer()
            try:
                await commit_offsets(self._cluster, self.config, group, wanted, committer=committer, once=once)
                return
            except RefusedError as error:
                attempts += 1
                pause_s = backoff_s(attempts, self.config.retry_backoff_ms, self.config.retry_backoff_max_ms)
                if not self._is_between_generations(committer, offsets, error.code):
                    if self._member is not None and error.code in _NO_MEMBER_ANY_MORE:
                        raise CommitFailedError(group, error.code) from error
                    raise
                if loop.time() + pause_s > deadline:
                    raise RefusedError(
                        ErrorCode.REBALANCE_IN_PROGRESS, f"group {group!r} rebalances: commit again after the next read"
                    ) from error
            await asyncio.sleep(pause_s)
            if not offsets.keys() <= self._opened().states.keys():
                # Another task's read gave some up, and with the new generation this would undo its new owner's commits.
                raise RefusedError(
                    ErrorCode.REBALANCE_IN_PROGRESS,
                    f"group {group!r} rebalances: partitions were given up while their commit waited",
                )

    def _is_between_generations(
        self, committer: Committer, offsets: Mapping[TopicPartition, int], code: ErrorCode
    ) -> bool:
        """Whether a commit was refused only because the group is about to have its next generation, or has it."""
        member = self._member
        if member is None or not offsets.keys() <= self._opened().states.keys():
            return False
        if code is ErrorCode.ILLEGAL_GENERATION:
            return member.generation != NO_GENERATION and (
                member.is_joining or member.generation != committer.generation
            )
        return code is ErrorCode.REBALANCE_IN_PROGRESS

    async def _committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        found = await fetch_offsets(self._cluster, self.config, self._group(), partitions)
        return {partition: at.offset for partition, at in found.items()}

    def _positions(self) -> dict[TopicPartition, int]:
        """Where the assigned partitions are, those that have begun."""
        states = self._opened().states
        return {each: state.position for each, state in states.items() if state.position != NO_POSITION}

    def _committer(self) -> Committer:
        member = self._member
        if member is None:
            return NO_MEMBER
        if member.generation == NO_GENERATION:
            raise CommitFailedError(member.group, ErrorCode.UNKNOWN_MEMBER_ID)
        return Committer(member.generation, member.member_id, self.config.group_instance_id)

    def _group(self) -> str:
        if self.config.group is None:
            raise ClientError("the consumer has no group: ConsumerConfig(group=...)")
        return self.config.group

    async def _list_all(self, partitions: Iterable[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        self._opened()
        wanted = {TopicPartition(*partition): timestamp for partition in partitions}
        listed = await list_offsets(self._cluster, self.config, wanted, self._isolation)
        return {partition: entry.offset for partition, entry in listed.items()}

    def _opened(self) -> Fetcher:
        raise NotImplementedError
