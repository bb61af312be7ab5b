"""The client's side of a share session: which partitions the broker fetches for this member, and the session's epoch.

A state machine without I/O. The first request is a fetch with epoch 0 and all partitions; each later one, fetch or
acknowledgements, has the next epoch, and names only partitions that are new. `accepted` follows a request that the
broker served, `lost` any other. Source: Kafka's org.apache.kafka.clients.consumer.internals.ShareSessionHandler.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from barnabas.protocol.messages.share.share_acknowledge import AcknowledgePartition, AcknowledgeTopic
from barnabas.protocol.messages.share.share_fetch import INITIAL_EPOCH, ForgottenTopic

_MAX_EPOCH: Final = 0x7FFF_FFFF

TopicIdPartition = tuple[bytes, int]


class ShareSession:
    """One session. Requests are sent one after the other."""

    def __init__(self) -> None:
        self.epoch = INITIAL_EPOCH
        """The epoch of the next request."""
        self._partitions: frozenset[TopicIdPartition] = frozenset()

    @property
    def is_open(self) -> bool:
        """Whether the broker has the session. Only then there are locks, and acknowledgements."""
        return self.epoch != INITIAL_EPOCH

    def has(self, partitions: Collection[TopicIdPartition]) -> bool:
        """Whether all of these are among the session's: a fetch that acknowledges others would add them."""
        return self._partitions.issuperset(partitions)

    def next_fetch(
        self, wanted: frozenset[TopicIdPartition], acknowledged: Sequence[AcknowledgeTopic]
    ) -> tuple[list[AcknowledgeTopic], list[ForgottenTopic]]:
        """Return the topics and the forgotten ones of the fetch by which the broker has exactly `wanted`."""
        forgotten: list[ForgottenTopic] = []
        by_id = {topic.topic_id: list(topic.partitions) for topic in acknowledged}
        for topic_id, partition in sorted(wanted - self._partitions):
            by_id.setdefault(topic_id, []).append(AcknowledgePartition(partition=partition, batches=[]))
        for topic_id, partition in sorted(self._partitions - wanted):
            if not forgotten or forgotten[-1].topic_id != topic_id:
                numbers: list[int] = []
                forgotten.append(ForgottenTopic(topic_id=topic_id, partitions=numbers))
            numbers.append(partition)
        self._partitions = wanted
        return [AcknowledgeTopic(topic_id=each, partitions=some) for each, some in by_id.items()], forgotten

    def accepted(self) -> None:
        """Note that the broker served the request."""
        self.epoch = self.epoch % _MAX_EPOCH + 1

    def lost(self) -> None:
        """Note that the broker's session is gone, or unknown: the next fetch opens another one."""
        self.epoch = INITIAL_EPOCH
        self._partitions = frozenset()
