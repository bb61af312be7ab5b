"""The consumer's queries for offsets of the log, of any partition, assigned or not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.clients.config import ConsumerConfig
from barnabas.clients.consumer.offset_reset import isolation_level
from barnabas.clients.consumer.record_queue import RecordQueue
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.offsets import ListedOffset, list_offsets
from barnabas.protocol.topic_partition import TopicPartition


class LogOffsets:
    """All methods raise ClosedError, and what `list_offsets` raises. "End" follows the consumer's isolation level."""

    def __init__(self, cluster: Cluster, config: ConsumerConfig, queue: RecordQueue) -> None:
        self._cluster = cluster
        self._config = config
        self._queue = queue
        self._isolation = isolation_level(config)

    async def at(self, partitions: Iterable[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        """Return each partition's offset for EARLIEST_TIMESTAMP or LATEST_TIMESTAMP."""
        self._queue.ensure_open()
        return await self.query({TopicPartition(*partition): timestamp for partition in partitions})

    async def for_times(self, timestamps_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, ListedOffset | None]:
        """Return the first record of each at or after a time, None without one. Raises ValueError."""
        for partition, timestamp in timestamps_ms.items():
            if timestamp < 0:
                raise ValueError(f"{partition}: timestamp {timestamp} is negative")
        self._queue.ensure_open()
        listed = await list_offsets(self._cluster, self._config, timestamps_ms, self._isolation)
        return {partition: None if entry.offset < 0 else entry for partition, entry in listed.items()}

    async def query(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the offsets for timestamps or their special values, -1 where no record is that late."""
        listed = await list_offsets(self._cluster, self._config, wanted, self._isolation)
        return {partition: entry.offset for partition, entry in listed.items()}
