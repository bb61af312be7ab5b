"""GroupCoordinator: the parts of it, and when they begin and end.

    start    every partition of `__consumer_offsets` that has records is read on a thread, one after the other; its
             groups are refused meanwhile (COORDINATOR_LOAD_IN_PROGRESS), all others are served
    later    offsets that have expired are taken back, and those of topics that were deleted
    stop     members who wait are told to look for the coordinator again; the background tasks end; whatever was
             answered is in the log

If `__consumer_offsets` itself is deleted, all groups are forgotten, and the next commit makes it anew.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from barnabas.broker.groups.classic.core import GroupClock, GroupSettings
from barnabas.broker.groups.classic.membership import GroupMembership
from barnabas.broker.groups.consumer.late_groups import LateConsumerGroups
from barnabas.broker.groups.consumer.settings import ConsumerGroupSettings, Surroundings
from barnabas.broker.groups.directory import GroupDirectory
from barnabas.broker.groups.group_log import GroupLog
from barnabas.broker.groups.group_records import GroupRecord
from barnabas.broker.groups.offsets.expiry import OffsetExpiryTask
from barnabas.broker.groups.offsets.service import GroupOffsets
from barnabas.broker.groups.offsets.topic import OFFSETS_TOPIC
from barnabas.broker.storage.files.errors import StorageError
from barnabas.protocol.errors import BrokerError, DecodeError
from barnabas.protocol.groups.keys import OffsetCommitKey
from barnabas.protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from barnabas.broker.groups.consumer.groups import ConsumerGroups
    from barnabas.broker.groups.offsets.loader import LoadedPartition
    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.broker.metadata.store import MetadataStore
    from barnabas.broker.metadata_changes import MetadataChanges
    from barnabas.broker.partitions.flush_waits import FlushWaits
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.partitions.registry import PartitionRegistry
    from barnabas.broker.probes import GroupProbe

logger = logging.getLogger(__name__)

PROGRESS_SECONDS: Final = 5.0
"""Between two lines about a load that takes long."""


class GroupCoordinator:
    """Owns the group log, the members, the offsets and their background tasks."""

    def __init__(
        self,
        *,
        partitions: PartitionRegistry,
        store: MetadataStore,
        changes: MetadataChanges,
        config: LiveConfig,
        flush_waits: FlushWaits,
        blocking_io: Executor,
        wall_ms: Callable[[], int],
        loop: asyncio.AbstractEventLoop,
        probe: GroupProbe,
    ) -> None:
        self._partitions = partitions
        self._store = store
        self._config = config
        self._blocking_io = blocking_io
        self._loop = loop
        self.log = GroupLog(
            partitions=partitions,
            store=store,
            changes=changes,
            config=config,
            flush_waits=flush_waits,
            wall_ms=wall_ms,
            loop=loop,
        )
        broker = config.broker
        reads_only = config.static.get_bool("read.only")
        classic = GroupMembership(
            group_log=self.log,
            settings=GroupSettings(
                min_session_timeout_ms=broker.get_int("group.min.session.timeout.ms"),
                max_session_timeout_ms=broker.get_int("group.max.session.timeout.ms"),
                initial_rebalance_delay_ms=broker.get_int("group.initial.rebalance.delay.ms"),
                max_size=broker.get_int("group.max.size"),
            ),
            loop=loop,
            wall_ms=wall_ms,
            probe=probe,
            reads_only=reads_only,
        )
        clock = GroupClock(loop.time, wall_ms)
        around = Surroundings(ConsumerGroupSettings.of(broker), clock, lambda: store.image)
        self.has_consumer_protocol = around.settings.is_enabled

        def make_consumer_groups() -> ConsumerGroups:
            from barnabas.broker.groups.consumer.groups import ConsumerGroups

            return ConsumerGroups(
                group_log=self.log, classic=classic, around=around, loop=loop, probe=probe, reads_only=reads_only
            )

        self.consumer_groups = LateConsumerGroups(make_consumer_groups)
        self.members = GroupDirectory(self.log, classic, self.consumer_groups)
        self.offsets = GroupOffsets(self.log, self.members, store, config, wall_ms)
        self._expiry = OffsetExpiryTask(self.offsets, config, wall_ms)
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False

    def start(self) -> None:
        """Begin to load. Before the first client is accepted: its groups must not be taken for unknown."""
        topic = self._store.image.topics.get(OFFSETS_TOPIC)
        to_load = []
        for number in sorted(topic.partitions) if topic is not None else ():
            partition = self._partitions.get(OFFSETS_TOPIC, number)
            if partition is None:  # its directory is offline: nobody knows what its groups have committed
                self.log.end_loading(number, failed=True)
            elif partition.log.log_start_offset < partition.log.high_watermark:
                self.log.begin_loading(number)
                to_load.append(number)
        self._store.add_listener(self._image_changed)
        if to_load:
            self._tasks.append(self._loop.create_task(self._load(to_load)))
        if not self._config.static.get_bool("read.only"):
            self._tasks.append(self._loop.create_task(self._expiry.run()))

    async def stop(self) -> None:
        """End the background tasks."""
        self._stopping = True
        await self.log.finish_creation()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _load(self, numbers: list[int]) -> None:
        started = said = time.monotonic()
        records = 0
        for done, number in enumerate(numbers):
            records += await self._load_partition(number)
            if time.monotonic() - said >= PROGRESS_SECONDS:
                said = time.monotonic()
                logger.info("loading %s, partitions=%d/%d records=%d", OFFSETS_TOPIC, done + 1, len(numbers), records)
        gc.freeze()  # what was loaded stays: no collection needs to look at it again
        logger.info(
            "%s is loaded, partitions=%d records=%d offsets=%d seconds=%.3f",
            OFFSETS_TOPIC,
            len(numbers),
            records,
            self.offsets.committed.count(),
            time.monotonic() - started,
        )

    async def _load_partition(self, number: int) -> int:
        """The records that it has. Whatever happens, its groups are not left to ask again for ever."""
        partition = self._partitions.get(OFFSETS_TOPIC, number)
        records, failed, gone = 0, False, list[OffsetCommitKey]()
        if partition is not None:
            try:
                records, gone = await self._read_partition(number, partition)
            except (DecodeError, BrokerError, StorageError, OSError) as error:
                logger.error("%s-%d cannot be loaded, its groups are not served: %s", OFFSETS_TOPIC, number, error)
                failed = not partition.is_retired  # else it was deleted meanwhile
            except Exception:  # a bug, which says nothing of the other partitions
                logger.exception("%s-%d cannot be loaded, its groups are not served", OFFSETS_TOPIC, number)
                failed = not partition.is_retired
        self.log.end_loading(number, failed=failed)
        if not self._config.static.get_bool("read.only"):
            self._take_back(gone)
        return records

    async def _read_partition(self, number: int, partition: Partition) -> tuple[int, list[OffsetCommitKey]]:
        """How many records it has, and the offsets in topics that are not there any more.

        Those were deleted while nobody could take their offsets back: before a kill, or during this load. A new topic
        of the same name must not be read from there.
        """
        from barnabas.broker.groups.offsets.loader import load_offsets_partition  # a new broker has nothing to load

        buffer_bytes = self._config.broker.get_int("offsets.load.buffer.size")
        loaded: LoadedPartition = await self._loop.run_in_executor(
            self._blocking_io,
            load_offsets_partition,
            partition.log,
            lambda group_id: self.log.partition_of(group_id) == number,
            buffer_bytes,
        )
        if partition.is_retired:
            return 0, []
        if loaded.skipped:
            logger.warning(
                "%s-%d has records that are not served here (of share or streams groups, or of groups that belong to"
                " another partition), skipped=%d",
                OFFSETS_TOPIC,
                number,
                loaded.skipped,
            )
        self.offsets.committed.adopt(loaded.offsets)
        for group_id, value in loaded.groups.items():
            self.members.load(group_id, value)
        self.members.load_consumer_groups(loaded.consumer_groups)
        there = self._store.image.names
        gone = [
            OffsetCommitKey(group_id, topic, number)
            for group_id, offsets in loaded.offsets.items()
            for (topic, number), value in offsets.items()
            if value.topic_id != ZERO_UUID and value.topic_id not in there
        ]
        return loaded.records, gone

    def _image_changed(self, before: MetadataImage, after: MetadataImage) -> None:
        """On the metadata writer's thread."""
        if before.topics is after.topics:
            return
        gone = {
            name: topic.topic_id
            for name, topic in before.topics.items()
            if name not in after.topics or after.topics[name].topic_id != topic.topic_id
        }
        new = {name for name, topic in after.topics.items() if before.topics.get(name) is not topic}
        if gone:
            self._loop.call_soon_threadsafe(self._topics_deleted, gone)
        if gone or new:
            changed, are_new = frozenset(gone) | new, not new <= before.topics.keys()
            self._loop.call_soon_threadsafe(lambda: self.consumer_groups.topics_changed(changed, are_new=are_new))

    def _topics_deleted(self, topics: dict[str, bytes]) -> None:
        if self._stopping:
            return
        if OFFSETS_TOPIC in topics:
            self._forget_all()
            return
        self._take_back(self.offsets.committed.of_topics(topics))

    def _take_back(self, keys: Iterable[OffsetCommitKey]) -> None:
        """Of topics that were deleted."""
        by_group: dict[str, list[GroupRecord]] = {}
        topics = set()
        for key in keys:
            by_group.setdefault(key.group, []).append(GroupRecord(key, None))
            topics.add(key.topic)
        for group_id, records in by_group.items():
            self.log.append(group_id, records, atomic=False).then(_say)
        if by_group:
            logger.info("offsets of deleted topics are taken back, groups=%d topics=%s", len(by_group), sorted(topics))

    def _forget_all(self) -> None:
        logger.warning("%s was deleted: all groups and their offsets are forgotten", OFFSETS_TOPIC)
        for group_id in list(self.members.group_ids()):
            self.members.forget(group_id)
        self.offsets.committed.forget(list(self.offsets.committed.group_ids()))
        self.log.forget_topic()


def _say(error: BrokerError | None) -> None:
    if error is not None:
        logger.warning("offsets of a deleted topic stay until they expire: %s", error)
