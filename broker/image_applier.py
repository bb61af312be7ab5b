"""Makes what the metadata image says: logs, their configs, and the partitions that the event loop serves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

from barnabas.broker.partition import Partition
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.broker.metadata.store import MetadataStore
    from barnabas.broker.metrics.probes import BrokerProbes
    from barnabas.broker.partition_registry import PartitionRegistry
    from barnabas.broker.storage.log_manager import LogManager

log = logging.getLogger(__name__)

Blocking = Callable[..., Awaitable[object]]
"""Runs a blocking function with its arguments on a thread."""


class ImageApplier:
    """Brings the log manager and the registry from one image to the next."""

    def __init__(
        self,
        store: MetadataStore,
        log_manager: LogManager,
        partitions: PartitionRegistry,
        config: LiveConfig,
        probes: BrokerProbes,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._store = store
        self._log_manager = log_manager
        self._partitions = partitions
        self._config = config
        self._probes = probes
        self._loop = loop

    def online_directory_ids(self) -> list[bytes]:
        """Where new partitions may go."""
        online = set(self._log_manager.live_directories)
        return [identity for path, identity in self._store.directory_ids.items() if path in online]

    def serve_all(self) -> None:
        """At start, once the logs are loaded: serve every partition of the image whose log is there."""
        image = self._store.image
        for topic_partition in _partitions_of(image):
            self._serve(image, topic_partition)

    async def apply(self, before: MetadataImage, after: MetadataImage, blocking: Blocking) -> None:
        """Bring everything from `before` to `after`. Raises BrokerError when a log could not be made."""
        gone = [name for name, topic in before.topics.items() if after.topics.get(name) is None]
        for name in gone:
            for number in before.topics[name].partitions:
                self._partitions.remove(TopicPartition(name, number))
            self._probes.forget_topic(name)
        self._apply_configs(before, after)
        new = [each for each in _partitions_of(after) if before.partition(*each) is None]
        await blocking(self._delete_logs, before, gone)
        await blocking(self._make_logs, after, new)
        for topic_partition in new:
            self._serve(after, topic_partition)

    def _apply_configs(self, before: MetadataImage, after: MetadataImage) -> None:
        if before.configs == after.configs:
            return
        broker_changed = self._config.apply(after)
        if broker_changed:
            self._log_manager.update_broker_config(self._config.broker)
        for name in after.topics:
            if broker_changed or before.topic_configs(name) != after.topic_configs(name):
                self._log_manager.update_topic_config(name, self._config.log_config(name))

    def _delete_logs(self, before: MetadataImage, names: list[str]) -> None:
        self._log_manager.delete(
            TopicPartition(name, number) for name in names for number in before.topics[name].partitions
        )

    def _make_logs(self, image: MetadataImage, new: list[TopicPartition]) -> None:
        for topic_partition in new:
            self._store.make_log(image, topic_partition, self._log_manager)

    def _serve(self, image: MetadataImage, topic_partition: TopicPartition) -> None:
        partition_log = self._log_manager.get(topic_partition)
        state = image.partition(*topic_partition)
        if partition_log is None or state is None:
            log.warning("%s is not served: its log directory is offline", topic_partition)
            return
        partition_log.assign_epoch_start_offset(state.leader_epoch, partition_log.log_end_offset)
        topic_id = image.topics[topic_partition.topic].topic_id
        probe = self._probes.topic(topic_partition.topic)
        self._partitions.add(topic_partition, Partition(partition_log, state.leader_epoch, topic_id, probe, self._loop))


def _partitions_of(image: MetadataImage) -> Iterator[TopicPartition]:
    for name, topic in image.topics.items():
        for number in topic.partitions:
            yield TopicPartition(name, number)
