"""The partitions that this broker leads, by topic and number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.partitions.replication import Replication
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from barnabas.broker.partitions.partition import Partition

    TopicName = Callable[[bytes], str | None]
    """Returns the name of the topic with an id, or None."""


class PartitionRegistry:
    """Maps that only the event loop changes.

    `by_name` and `by_id` are for the kernels: a topic's name in UTF-8, or its id, to its partitions by number, None
    where a number is not served. A topic without served partitions is in neither. Each map has its own lists: while a
    topic is created again, partitions of both ids may be served, and an id must not lead to the other's partitions.
    """

    __slots__ = ("_is_frozen", "_without_log", "by_id", "by_key", "by_name", "exists", "replication")

    def __init__(self) -> None:
        self.by_name: dict[bytes, list[Partition | None]] = {}
        self.by_id: dict[bytes, list[Partition | None]] = {}
        self.by_key: dict[tuple[str, int], Partition] = {}
        """By topic and number, for loops over many partitions; `get` for one."""
        self._without_log: dict[TopicPartition, str] = {}
        """Partitions without a log, and why."""
        self._is_frozen = False
        self.replication = Replication(lambda: self.by_key.values())
        """What the standby has of the partitions."""
        self.exists: Callable[[str, int], bool] = lambda topic, partition: False
        """Whether the metadata has a partition, by topic and number."""

    def get(self, topic: str, partition: int) -> Partition | None:
        """Return the partition, or None; `refusal` returns the error then."""
        return self.by_key.get((topic, partition))

    def served(self) -> dict[tuple[str, int], Partition]:
        """Return all served partitions by topic and number."""
        return dict(self.by_key)

    def freeze(self) -> None:
        """Refuse writes to all partitions, and to those that are added later, with NOT_LEADER_OR_FOLLOWER."""
        self._is_frozen = True
        for partition in self.by_key.values():
            partition.freeze()

    def thaw(self) -> None:
        """Accept writes again."""
        self._is_frozen = False
        for partition in self.by_key.values():
            partition.thaw()

    def of_topic(self, topic: str) -> list[Partition]:
        """Return the served partitions of a topic."""
        return [each for each in self.by_name.get(topic.encode(), ()) if each is not None]

    def open_transactions(self) -> Iterator[tuple[tuple[str, int], list[int]]]:
        """Return topic and number of each partition, with the ids of producers that have a transaction open there."""
        for key, partition in self.by_key.items():
            yield key, partition.open_producers()

    def refusal(self, topic: str, partition: int) -> BrokerError:
        """Return the error for a partition that `get` does not find."""
        name = f"{printable(topic)}-{partition}"
        reason = self._without_log.get(TopicPartition(topic, partition))
        if reason is not None:
            return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{name} is not served: {reason}")
        if self.exists(topic, partition):
            message = f"the log of {name} is being created: try again in a moment"
        else:
            message = f"there is no partition {name} here"
        return BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)

    def is_offline(self, topic: str, partition: int) -> bool:
        """Return whether the partition's log directory is offline, or its log could not be created.

        A partition whose log is being created is not offline.
        """
        found = self.by_key.get((topic, partition))
        return (topic, partition) in self._without_log if found is None else not found.is_available

    def add(self, topic_partition: TopicPartition, partition: Partition) -> None:
        """Start serving a partition."""
        before = self.by_key.get(topic_partition)
        if before is not None:
            self._forget(topic_partition, before)
        self.by_key[topic_partition] = partition
        if self._is_frozen:
            partition.freeze()
        self.replication.attach(partition)
        self._without_log.pop(topic_partition, None)
        number = topic_partition.partition
        _put(self.by_name, topic_partition.topic.encode(), number, partition)
        _put(self.by_id, partition.topic_id, number, partition)

    def add_without_log(self, topic_partition: TopicPartition, reason: str) -> None:
        """Record a partition that is not served: its log could not be created, or is in an offline directory."""
        self._without_log[topic_partition] = reason

    @property
    def without_log_count(self) -> int:
        """Number of partitions that have no log."""
        return len(self._without_log)

    def without_log(self) -> list[TopicPartition]:
        """Return the partitions that `add_without_log` recorded and that have no log yet."""
        return list(self._without_log)

    def remove(self, topic_partition: TopicPartition) -> None:
        """Stop serving a partition, if it is known, and wake its waiting fetches."""
        self._without_log.pop(topic_partition, None)
        partition = self.by_key.pop(topic_partition, None)
        if partition is not None:
            self._forget(topic_partition, partition)
            partition.retire()

    def wake(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Wake the waiting fetches of partitions whose log directory has failed."""
        for topic_partition in topic_partitions:
            partition = self.by_key.get(topic_partition)
            if partition is not None:
                partition.wake_all()

    def _forget(self, topic_partition: TopicPartition, partition: Partition) -> None:
        """Take a partition out of the maps of the kernels."""
        _take(self.by_name, topic_partition.topic.encode(), topic_partition.partition)
        _take(self.by_id, partition.topic_id, topic_partition.partition)


def _put(topics: dict[bytes, list[Partition | None]], key: bytes, number: int, partition: Partition) -> None:
    numbered = topics.setdefault(key, [])
    if number >= len(numbered):
        numbered.extend([None] * (number + 1 - len(numbered)))
    numbered[number] = partition


def _take(topics: dict[bytes, list[Partition | None]], key: bytes, number: int) -> None:
    numbered = topics[key]
    numbered[number] = None
    while numbered and numbered[-1] is None:
        numbered.pop()
    if not numbered:
        del topics[key]
