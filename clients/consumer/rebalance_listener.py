"""Callbacks of a subscribed consumer about partitions that it gets and gives up."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.topic_partition import TopicPartition


class RebalanceListener:
    """Base class with callbacks that do nothing; override the ones you need.

    They run inside the consumer's own calls (poll, async for, subscribe, close), so no record is handed out meanwhile.
    An exception leaves through that call.
    """

    async def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """Called after these partitions were assigned; they may be sought. Empty if this member gets nothing new.

        With an eager assignor these are all assigned partitions, with `cooperative-sticky` only the added ones.
        """

    async def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """Called before these partitions are given up; the next assignment may return them.

        With an eager assignor these are all assigned partitions, with `cooperative-sticky` only those that move.
        Finish their records and commit. With auto_commit the commit has been done.
        """

    async def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """Called when these partitions may already belong to another member, so it is too late to commit.

        Calls `on_partitions_revoked` by default.
        """
        await self.on_partitions_revoked(partitions)
