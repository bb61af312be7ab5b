"""The partitions that this broker leads, by topic and number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from barnabas.broker.partitions.partition import Partition

    TopicName = Callable[[bytes], str | None]
    """The name of the topic that has an id, None where there is no such topic."""


class PartitionRegistry:
    """A map that the event loop alone changes."""

    def __init__(self) -> None:
        self._partitions: dict[tuple[str, int], Partition] = {}
        self._without_log: set[tuple[str, int]] = set()

    def get(self, topic: str, partition: int) -> Partition | None:
        """None where this broker has no such partition; `refusal` says why."""
        return self._partitions.get((topic, partition))

    def refusal(self, topic: str, partition: int) -> BrokerError:
        """The error for a partition that `get` does not have."""
        name = f"{printable(topic)}-{partition}"
        if (topic, partition) in self._without_log:
            return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log of {name} is in a directory that is offline")
        return BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name} here")

    def add(self, topic_partition: TopicPartition, partition: Partition) -> None:
        """Serve it from now on."""
        self._partitions[topic_partition] = partition
        self._without_log.discard(topic_partition)

    def add_without_log(self, topic_partition: TopicPartition) -> None:
        """It exists, but its log is in a directory that cannot be used."""
        self._without_log.add(topic_partition)

    def remove(self, topic_partition: TopicPartition) -> None:
        """Serve it no more; whoever waits for its records is told so. Unknown ones are fine."""
        self._without_log.discard(topic_partition)
        partition = self._partitions.pop(topic_partition, None)
        if partition is not None:
            partition.retire()

    def wake(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Their log directory has failed: whoever waits for their records is told so."""
        for topic_partition in topic_partitions:
            partition = self._partitions.get(topic_partition)
            if partition is not None:
                partition.wake_all()
