"""Groups of this cluster as a mirror writes them: through the coordinator, and only while they have no members."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.groups.group import GroupState
from barnabas.broker.mirrors.following.source_groups import GroupOffset, Offsets
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.groups.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopic,
)
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.groups.offsets.service import GroupOffsets

PARTITIONS_AT_ONCE: Final = 500
"""Partitions of one commit, which is one batch of the group's log."""

_WITHOUT_MEMBERS: Final = frozenset({GroupState.EMPTY, GroupState.DEAD})


class LocalGroups:
    """Event loop only."""

    def __init__(self, offsets: GroupOffsets) -> None:
        self._offsets = offsets

    def ids(self) -> list[str]:
        """Return the groups that have committed offsets."""
        return sorted(self._offsets.committed.group_ids())

    def is_active(self, group_id: str) -> bool:
        """Return whether the group has members. Raises BrokerError while its log is loaded."""
        summary = self._offsets.summary(group_id)
        return summary is not None and summary.state not in _WITHOUT_MEMBERS

    def committed(self, group_id: str) -> Offsets:
        """Return a group's committed offsets."""
        return {
            TopicPartition(*key): GroupOffset(value.offset, value.leader_epoch, value.metadata)
            for key, value in self._offsets.committed.of(group_id).items()
        }

    async def commit(self, group_id: str, offsets: Offsets) -> Mapping[TopicPartition, ErrorCode]:
        """Commit offsets of a group without members; return the errors of those that were refused.

        Returns when they are as durable as a client's commit. Raises BrokerError for the whole group, for example if it
        has members.
        """
        refused: dict[TopicPartition, ErrorCode] = {}
        items = list(offsets.items())
        for start in range(0, len(items), PARTITIONS_AT_ONCE):
            answer = await self._commit(group_id, items[start : start + PARTITIONS_AT_ONCE])
            for topic in answer.topics:
                for each in topic.partitions:
                    if each.error is not ErrorCode.NONE:
                        refused[TopicPartition(topic.name, each.partition)] = each.error
        return refused

    async def _commit(
        self, group_id: str, offsets: Iterable[tuple[TopicPartition, GroupOffset]]
    ) -> OffsetCommitResponse:
        topics: dict[str, list[OffsetCommitPartition]] = {}
        for key, each in offsets:
            entry = OffsetCommitPartition(
                partition=key.partition, offset=each.offset, leader_epoch=each.leader_epoch, metadata=each.metadata
            )
            topics.setdefault(key.topic, []).append(entry)
        if self.is_active(group_id):
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {group_id} has members")
        named = [OffsetCommitTopic(name=name, partitions=entries) for name, entries in topics.items()]
        answer = self._offsets.commit(OffsetCommitRequest(group_id=group_id, topics=named))
        if isinstance(answer, OffsetCommitResponse):
            return answer
        arrived: asyncio.Future[OffsetCommitResponse] = asyncio.get_running_loop().create_future()

        def arrive(response: OffsetCommitResponse) -> None:
            if not arrived.done():  # else the mirror was stopped meanwhile
                arrived.set_result(response)

        answer.then(arrive)
        return await arrived
