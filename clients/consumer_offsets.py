"""The consumer's calls about its group's committed offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.clients.cluster import Cluster
from barnabas.clients.config import ConsumerConfig
from barnabas.clients.errors import ClientError
from barnabas.clients.fetcher import Fetcher
from barnabas.clients.groups import CommittedOffset, commit_offsets, fetch_offsets
from barnabas.clients.partition_state import NO_POSITION
from barnabas.protocol.topic_partition import TopicPartition


class ConsumerOffsets:
    """Part of Consumer: what it commits for `ConsumerConfig.group`."""

    config: ConsumerConfig
    _cluster: Cluster

    async def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> dict[TopicPartition, int]:
        """Commit these offsets, or where every assigned partition is: behind the last record that was handed out.

        Nothing is committed by itself. Returns what was committed. Raises ClientError without a group, RefusedError.
        """
        group = self._group()
        states = self._opened().states
        if offsets is None:
            offsets = {each: state.position for each, state in states.items() if state.position != NO_POSITION}
        committed = {TopicPartition(*partition): offset for partition, offset in offsets.items()}
        for partition, offset in committed.items():
            if offset < 0:
                raise ValueError(f"{partition}: offset {offset} is negative")
        if committed:
            wanted = {partition: CommittedOffset(offset) for partition, offset in committed.items()}
            await commit_offsets(self._cluster, self.config, group, wanted)
        return committed

    async def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Where the group is in these; those in which it has committed nothing are left out. Raises as `commit`."""
        self._opened()
        return await self._committed(TopicPartition(*partition) for partition in partitions)

    async def _committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        found = await fetch_offsets(self._cluster, self.config, self._group(), partitions)
        return {partition: at.offset for partition, at in found.items()}

    def _group(self) -> str:
        if self.config.group is None:
            raise ClientError("the consumer has no group: ConsumerConfig(group=...)")
        return self.config.group

    def _opened(self) -> Fetcher:
        raise NotImplementedError
