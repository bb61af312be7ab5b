"""The partitions that this broker leads, by topic and number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from barnabas.broker.partition import Partition


class PartitionRegistry:
    """A map that the event loop alone changes."""

    def __init__(self) -> None:
        self._partitions: dict[tuple[str, int], Partition] = {}

    def get(self, topic: str, partition: int) -> Partition | None:
        """None where this broker has no such partition."""
        return self._partitions.get((topic, partition))

    def add(self, topic_partition: TopicPartition, partition: Partition) -> None:
        """Serve it from now on."""
        self._partitions[topic_partition] = partition

    def remove(self, topic_partition: TopicPartition) -> None:
        """Serve it no more; whoever waits for its records is told so. Unknown ones are fine."""
        partition = self._partitions.pop(topic_partition, None)
        if partition is not None:
            partition.wake_all()

    def __iter__(self) -> Iterator[Partition]:
        return iter(list(self._partitions.values()))
