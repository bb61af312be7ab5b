"""The partitions that this broker leads, by topic and number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from barnabas.broker.partitions.partition import Partition

    TopicName = Callable[[bytes], str | None]
    """Returns the name of the topic with an id, or None."""


class PartitionRegistry:
    """A map that only the event loop changes."""

    def __init__(self) -> None:
        self._partitions: dict[tuple[str, int], Partition] = {}
        self._without_log: set[tuple[str, int]] = set()

    def get(self, topic: str, partition: int) -> Partition | None:
        """Return the partition, or None; `refusal` returns the error then."""
        return self._partitions.get((topic, partition))

    def open_transactions(self) -> Iterator[tuple[tuple[str, int], list[int]]]:
        """Return topic and number of each partition, with the ids of producers that have a transaction open there."""
        for key, partition in self._partitions.items():
            yield key, partition.open_producers()

    def refusal(self, topic: str, partition: int) -> BrokerError:
        """Return the error for a partition that `get` does not find."""
        name = f"{printable(topic)}-{partition}"
        if (topic, partition) in self._without_log:
            return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log of {name} is in a directory that is offline")
        return BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name} here")

    def is_offline(self, topic: str, partition: int) -> bool:
        """Return whether the partition's log directory is offline. A partition whose log is being created is not."""
        found = self._partitions.get((topic, partition))
        return (topic, partition) in self._without_log if found is None else not found.is_available

    def add(self, topic_partition: TopicPartition, partition: Partition) -> None:
        """Start serving a partition."""
        self._partitions[topic_partition] = partition
        self._without_log.discard(topic_partition)

    def add_without_log(self, topic_partition: TopicPartition) -> None:
        """Record a partition whose log is in an offline directory."""
        self._without_log.add(topic_partition)

    def remove(self, topic_partition: TopicPartition) -> None:
        """Stop serving a partition, if it is known, and wake its waiting fetches."""
        self._without_log.discard(topic_partition)
        partition = self._partitions.pop(topic_partition, None)
        if partition is not None:
            partition.retire()

    def wake(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Wake the waiting fetches of partitions whose log directory has failed."""
        for topic_partition in topic_partitions:
            partition = self._partitions.get(topic_partition)
            if partition is not None:
                partition.wake_all()
