"""Applies the metadata image: creates and deletes logs, updates their configs, registers partitions, passes on ACLs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.metadata.directories.reconcile import create_log
from barnabas.broker.metadata.mirrors.refusals import read_only_mirror
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log_manager import LogManager
from barnabas.protocol.errors import BrokerError
from barnabas.protocol.metadata.partition_state import NO_LEADER
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.partitions.registry import PartitionRegistry
    from barnabas.broker.partitions.replication import Replication
    from barnabas.broker.probes import BrokerProbes
    from barnabas.broker.security_applier import SecurityApplier
    from barnabas.broker.storage.log.readable_log import ReadableLog
    from barnabas.broker.storage.served_logs import ServedLogs

_EPOCH_THREADS: Final = 16

RETRY_SECONDS: Final = 2.0
"""Interval of the attempts to create logs that could not be created."""

MISSING_AT_ONCE: Final = 50
"""Missing logs that are created before other changes of the metadata have their turn."""

logger = logging.getLogger(__name__)

Blocking = Callable[..., Awaitable[Any]]
"""Runs a blocking function with its arguments on a thread."""


class ImageApplier:
    """Brings the log manager and the partition registry from one image to the next."""

    def __init__(
        self,
        store: MetadataView,
        log_manager: ServedLogs[ReadableLog],
        partitions: PartitionRegistry,
        config: LiveConfig,
        probes: BrokerProbes,
        loop: asyncio.AbstractEventLoop,
        security: SecurityApplier,
    ) -> None:
        self._store = store
        self._log_manager = log_manager
        self._partitions = partitions
        partitions.exists = lambda topic, partition: store.image.partition(topic, partition) is not None
        self._config = config
        self._probes = probes
        self._loop = loop
        self._security = security
        self._followers: list[Callable[[MetadataImage], None]] = []
        self._new_without_log: set[TopicPartition] = set()
        """Partitions that began in this run of the broker: no offline directory can have a log of theirs."""

    @property
    def replication(self) -> Replication:
        """What the standby has."""
        return self._partitions.replication

    def follow(self, changed: Callable[[MetadataImage], None]) -> None:
        """Have `changed` called with every later image once it is applied, in the event loop."""
        self._followers.append(changed)

    def online_directory_ids(self) -> list[bytes]:
        """Return the ids of the online directories, where new partitions may be placed."""
        online = set(self._log_manager.live_directories)
        return [identity for path, identity in self._store.directory_ids.items() if path in online]

    def serve_all(self) -> None:
        """Register every partition of the image whose log is loaded. Called once, at start."""
        image = self._store.image
        self._security.apply(image.security)
        self._begin_epochs(image)
        offline = self._log_manager.failures.offline
        reason = "its log directory is offline" if offline else "its log could not be created, which is tried again"
        for topic_partition in _partitions_of(image):
            if not self._serve(image, topic_partition, reason):
                logger.warning("%s is not served: %s", topic_partition, reason)

    async def apply(
        self, before: MetadataImage, after: MetadataImage, blocking: Blocking, *, later: str | None = None
    ) -> dict[str, BrokerError]:
        """Apply the difference between two images; return, by topic, why one of its logs could not be created.

        The logs of the new topic `later` are left to `create_one`.
        """
        gone = [name for name, topic in before.topics.items() if after.topics.get(name) is None]
        for name in gone:
            for number in before.topics[name].partitions:
                self._partitions.remove(TopicPartition(name, number))
                self._new_without_log.discard(TopicPartition(name, number))
            self._probes.forget_topic(name)
        new = [each for each in _partitions_of(after) if before.partition(*each) is None and each.topic != later]
        failed: dict[TopicPartition, BrokerError] = await blocking(self._apply_to_logs, before, after, gone, new)
        if after.security is not before.security:
            apply_security: Callable[[], None] = await blocking(self._security.prepare, after.security)
            apply_security()
        for topic_partition in new:
            self._serve_new(after, topic_partition, failed)
        self._update_served(before, after)
        for follower in self._followers:
            follower(after)
        report_failed(failed)
        return {topic_partition.topic: error for topic_partition, error in failed.items()}

    def _update_served(self, before: MetadataImage, after: MetadataImage) -> None:
        """Pass raised leader epochs, and mirrors that began or ended, on to partitions that are served already."""
        if after.topics is not before.topics:
            for name, topic in after.topics.items():
                earlier = before.topics.get(name)
                if earlier is None or earlier is topic:
                    continue
                for number, state in topic.partitions.items():
                    known = earlier.partitions.get(number)
                    if known is not None and known.leader_epoch != state.leader_epoch:
                        partition = self._partitions.get(name, number)
                        if partition is not None:
                            partition.leader_epoch = state.leader_epoch
        if after.mirrors is not before.mirrors:
            for name in {*before.mirrors.topics, *after.mirrors.topics}:
                mirror = read_only_mirror(after, name)
                if mirror != read_only_mirror(before, name):
                    for partition in self._partitions.of_topic(name):
                        partition.set_mirror(mirror)

    async def create_one(
        self, image: MetadataImage, topic_partition: TopicPartition, blocking: Blocking
    ) -> Mapping[TopicPartition, BrokerError]:
        """Create one log of a topic that was left for later, and register its partition, without a log on failure.

        The caller reports the failure.
        """
        failed: dict[TopicPartition, BrokerError] = await blocking(self._create_logs, image, [topic_partition])
        self._serve_new(image, topic_partition, failed)
        return failed

    @property
    def lacks_logs(self) -> bool:
        """Whether a partition of the image has no log: it could not be created, or its directory is offline."""
        return self._partitions.without_log_count > 0

    async def create_missing(self, image: MetadataImage, blocking: Blocking) -> bool:
        """Try again to create the logs that could not be created, MISSING_AT_ONCE of them, and serve their partitions.

        Returns whether there may be more that can be created now.
        """
        created = await blocking(self._create_missing, image, self._partitions.without_log())
        for topic_partition in created:
            self._new_without_log.discard(topic_partition)
            self._serve(image, topic_partition)
        return len(created) == MISSING_AT_ONCE

    @property
    def _writable(self) -> LogManager:
        """The log manager, for changes: the metadata of a broker that only reads never changes."""
        assert isinstance(self._log_manager, LogManager), "a broker that only reads changes no log"
        return self._log_manager

    def _apply_to_logs(
        self, before: MetadataImage, after: MetadataImage, gone: list[str], new: list[TopicPartition]
    ) -> dict[TopicPartition, BrokerError]:
        """Apply the changes that take locks and wait for the disk."""
        self._delete_logs(before, gone)
        self._apply_configs(before, after)
        return self._create_logs(after, new)

    def _apply_configs(self, before: MetadataImage, after: MetadataImage) -> None:
        if before.configs == after.configs:
            return
        if self._config.apply(after):
            self._writable.update_broker_config(self._config.broker)  # every log, its topic's own configs included
            return
        for name in after.topics:
            if before.topic_configs(name) != after.topic_configs(name):
                self._writable.update_topic_config(name, self._config.log_config(name))

    def _delete_logs(self, before: MetadataImage, names: list[str]) -> None:
        self._writable.delete(
            TopicPartition(name, number) for name in names for number in before.topics[name].partitions
        )

    def _create_logs(self, image: MetadataImage, new: Sequence[TopicPartition]) -> dict[TopicPartition, BrokerError]:
        failed: dict[TopicPartition, BrokerError] = {}
        for topic_partition in new:
            try:
                self._create_log(image, topic_partition, is_new=True)
            except BrokerError as error:
                failed[topic_partition] = error
        return failed

    def _create_missing(self, image: MetadataImage, missing: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Create the missing logs that can be created, and return their partitions.

        The first that fails in a directory stands for the others there. Nothing is created in another directory than
        the one that the metadata names: a log that failed for another reason than room may have taken its own offline.
        """
        created: list[TopicPartition] = []
        refusing: set[Sequence[bytes]] = set()
        online = set(self.online_directory_ids())
        for topic_partition in missing:
            if len(created) == MISSING_AT_ONCE:
                break
            state = image.partition(*topic_partition)
            if state is None or state.directories in refusing:
                continue
            is_new = topic_partition in self._new_without_log
            if self._log_manager.failures.offline and (not is_new or online.isdisjoint(state.directories)):
                continue
            try:
                self._create_log(image, topic_partition, is_new=is_new)
            except BrokerError as error:
                logger.debug("the log of %s still cannot be created: %s", topic_partition, error)
                refusing.add(state.directories)
            else:
                created.append(topic_partition)
        if created:
            names = ", ".join(map(str, created))
            logger.info("logs that could not be created exist now: count=%d partitions=%s", len(created), names)
        return created

    def _create_log(self, image: MetadataImage, topic_partition: TopicPartition, *, is_new: bool) -> None:
        topic = image.topics[topic_partition.topic]
        create_log(topic, topic_partition, self._writable, self._store.directory_ids, is_new=is_new)
        self._begin_epoch(image, topic_partition)

    def _begin_epochs(self, image: MetadataImage) -> None:
        """Begin the leader epochs of all partitions, after an unclean stop and for a standby that takes over.

        Each takes an fsync; threads let the file system combine them: a tenth of the time for 1,000 partitions.
        """
        due = [each for each in _partitions_of(image) if self._has_other_epoch(image, each)]

        def begin(topic_partition: TopicPartition) -> None:
            try:
                self._begin_epoch(image, topic_partition)
            except BrokerError as error:
                logger.error("%s cannot be written: %s", topic_partition, error)

        if len(due) < _EPOCH_THREADS:
            for topic_partition in due:
                begin(topic_partition)
            return
        with ThreadPoolExecutor(_EPOCH_THREADS, "leader-epochs") as threads:
            list(threads.map(begin, due))

    def _has_other_epoch(self, image: MetadataImage, topic_partition: TopicPartition) -> bool:
        partition_log, state = self._log_manager.get(topic_partition), image.partition(*topic_partition)
        return partition_log is not None and state is not None and partition_log.core.latest_epoch != state.leader_epoch

    def _begin_epoch(self, image: MetadataImage, topic_partition: TopicPartition) -> None:
        """Record durably that this broker appends in the image's leader epoch. Raises BrokerError."""
        partition_log = self._log_manager.get(topic_partition)
        state = image.partition(*topic_partition)
        if read_only_mirror(image, topic_partition.topic) is not None:
            return  # its epochs are those of the copied batches
        if isinstance(partition_log, PartitionLog) and state is not None:
            partition_log.assign_epoch_start_offset(state.leader_epoch, partition_log.log_end_offset)

    def _serve_new(
        self, image: MetadataImage, topic_partition: TopicPartition, failed: Mapping[TopicPartition, BrokerError]
    ) -> None:
        error = failed.get(topic_partition)
        if not self._serve(image, topic_partition, "" if error is None else error.message):
            self._new_without_log.add(topic_partition)

    def _serve(self, image: MetadataImage, topic_partition: TopicPartition, reason: str = "") -> bool:
        """Register a partition, without its log if there is none, because of `reason`; return whether it is served."""
        partition_log = self._log_manager.get(topic_partition)
        state = image.partition(*topic_partition)
        if partition_log is None and state is not None and state.leader == NO_LEADER:
            return True  # on another broker's disks: possible with read.only
        if partition_log is None or state is None:
            self._partitions.add_without_log(topic_partition, reason)
            return False
        topic_id = image.topics[topic_partition.topic].topic_id
        probe = self._probes.topic(topic_partition.topic)
        mirror = read_only_mirror(image, topic_partition.topic)
        self._partitions.add(
            topic_partition, Partition(partition_log, state.leader_epoch, topic_id, probe, self._loop, mirror)
        )
        return True


def report_failed(failed: Mapping[TopicPartition, BrokerError]) -> None:
    """Log which logs could not be created, in a line for each topic."""
    for topic in {each.topic: None for each in failed}:
        numbers = [each.partition for each in failed if each.topic == topic]
        logger.error(
            "logs of %s cannot be created, their partitions are not served until they can be, which is tried again"
            " every %g s: count=%d partitions=%s: %s",
            topic,
            RETRY_SECONDS,
            len(numbers),
            ",".join(map(str, numbers)),
            failed[TopicPartition(topic, numbers[0])].message,
        )


def _partitions_of(image: MetadataImage) -> Iterator[TopicPartition]:
    for name, topic in image.topics.items():
        for number in topic.partitions:
            yield TopicPartition(name, number)
