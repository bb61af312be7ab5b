"""What a subscribed consumer tells its user about its partitions."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.topic_partition import TopicPartition


class RebalanceListener:
    """Override what you need. Called by the consumer's own reads (poll, async for), subscribe and close, never beside
    them: while one runs, no record is handed out. What it raises comes out of that call.
    """

    async def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """These are ours from now on, and may be sought. None where the group has more members, or nothing comes to us.

        With an eager assignor they are all that we have; with `cooperative-sticky` they come to what we kept.
        """

    async def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """These will be somebody else's, unless they come back with the next assignment. All that we have, but for
        `cooperative-sticky`, which takes away only what moves.

        Finish and commit what belongs to them. With auto_commit that has been done.
        """

    async def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """These may be somebody else's already: it is too late to commit. Like `on_partitions_revoked` by default."""
        await self.on_partitions_revoked(partitions)
