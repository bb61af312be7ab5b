"""The queues of one topic's partitions."""

from __future__ import annotations

from barnabas.clients.network.cluster import TopicView
from barnabas.clients.producer.batch import PartitionQueue
from barnabas.clients.producer.compression_ratio import CompressionRatio
from barnabas.clients.producer.partitioner import StickyPartition
from barnabas.protocol.topic_partition import TopicPartition


class TopicQueues:
    """Owned by one producer. Queues are never removed, so a batch never loses its queue."""

    __slots__ = ("queues", "ratio", "sticky", "view")

    def __init__(self, view: TopicView, sticky: StickyPartition) -> None:
        self.view = view
        self.sticky = sticky
        self.ratio = CompressionRatio()
        self.queues: list[PartitionQueue] = []

    def update(self, view: TopicView) -> None:
        """Apply new metadata."""
        self.view = view
        for partition in range(len(self.queues), len(view.leaders)):
            self.queues.append(PartitionQueue(TopicPartition(view.name, partition), self.ratio))
