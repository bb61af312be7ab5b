"""The admin's calls about groups of consumers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.clients.admin.group_description import GroupDescription, describe_group
from barnabas.clients.admin.groups import CommittedOffset, commit_offsets, delete_group, fetch_offsets, list_groups
from barnabas.clients.config import AdminConfig
from barnabas.clients.network.cluster import Cluster
from barnabas.protocol.messages.groups.groups import ListedGroup
from barnabas.protocol.topic_partition import TopicPartition


class GroupAdmin:
    """Part of Admin."""

    config: AdminConfig
    _cluster: Cluster

    async def list_groups(self) -> list[ListedGroup]:
        """All groups by name, also those that only ever committed offsets."""
        return await list_groups(self._cluster, self.config)

    async def describe_group(self, group: str) -> GroupDescription:
        """A group with its members. Raises RefusedError: it is unknown."""
        return await describe_group(self._cluster, self.config, group)

    async def group_offsets(
        self, group: str, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, CommittedOffset]:
        """What a group has committed in these partitions (None: in all); an unknown group has nothing."""
        return await fetch_offsets(self._cluster, self.config, group, partitions)

    async def set_group_offsets(self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Commit in a group's name. Raises RefusedError: it has members, or a topic is unknown."""
        await commit_offsets(self._cluster, self.config, group, offsets)

    async def delete_group(self, group: str) -> None:
        """Delete a group with its offsets. Raises RefusedError: it is unknown, or has members."""
        await delete_group(self._cluster, self.config, group)
