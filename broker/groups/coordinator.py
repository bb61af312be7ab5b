"""GroupCoordinator: its parts, their start and their stop.

    start    every partition of `__consumer_offsets` that has records is read on a thread, one after the other; its
             groups are refused until then (COORDINATOR_LOAD_IN_PROGRESS), all others are served
    later    expired offsets are deleted, and those of deleted topics
    stop     waiting members are told to look for the coordinator again; the background tasks end; every answered change
             is in the log

If `__consumer_offsets` itself is deleted, all groups are forgotten, and the next commit creates it again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING

from barnabas.broker.coordinator_log.loading import Loaded, LogLoading
from barnabas.broker.groups.classic.settings import GroupSettings
from barnabas.broker.groups.consumer.settings import ConsumerGroupSettings, GroupContext
from barnabas.broker.groups.group import GroupType
from barnabas.broker.groups.log.group_log import GroupLog
from barnabas.broker.groups.log.records import GroupRecord
from barnabas.broker.groups.offsets.expiry import OffsetExpiryTask
from barnabas.broker.groups.offsets.service import GroupOffsets
from barnabas.broker.groups.offsets.transactional import TransactionalOffsets
from barnabas.broker.groups.registry import GroupRegistry
from barnabas.broker.groups.timers import GroupClock
from barnabas.protocol.groups.keys import OffsetCommitKey
from barnabas.protocol.topic_name import OFFSETS_TOPIC, SHARE_STATE_TOPIC
from barnabas.protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from barnabas.broker.coordinator_log.log import Appended
    from barnabas.broker.coordinator_log.parts import LogParts
    from barnabas.broker.groups.classic.groups import ClassicGroups
    from barnabas.broker.groups.consumer.groups import ConsumerGroups
    from barnabas.broker.groups.membership import ClassicMembership
    from barnabas.broker.groups.offsets.loader import LoadedPartition
    from barnabas.broker.groups.share.context import ShareContext
    from barnabas.broker.groups.share.groups import ShareGroups
    from barnabas.broker.groups.streams.groups import StreamsGroups
    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.probes import GroupProbe
    from barnabas.broker.share.coordinator import ShareCoordinator
    from barnabas.broker.storage.log.append import TransactionEnd
    from barnabas.protocol.errors import BrokerError

logger = logging.getLogger(__name__)


class GroupCoordinator:
    """Owns the group log, the registry, the services of the protocols, the offsets and their background tasks."""

    def __init__(
        self,
        parts: LogParts,
        *,
        blocking_io: Executor,
        probe: GroupProbe,
        share_coordinator: Callable[[], ShareCoordinator],
    ) -> None:
        """`share_coordinator` returns the coordinator of share partitions, which is created at its first use."""
        config, store, loop, wall_ms = parts.config, parts.store, parts.loop, parts.wall_ms
        self._store = store
        self._config = config
        self._blocking_io = blocking_io
        self._loop = loop
        self.log = GroupLog(parts)
        self._loading = LogLoading(self.log.coordinator_log, parts.partitions, store, keys_name="groups")
        self._clock = GroupClock(loop.time, wall_ms)
        self._reads_only = config.static.get_bool("read.only")
        self._context = GroupContext(ConsumerGroupSettings.of(config.broker), self._clock, lambda: store.image)
        self._classic_settings = GroupSettings.of(config.broker)
        self._classic: ClassicGroups | None = None
        self._members: ClassicMembership | None = None
        self._consumer: ConsumerGroups | None = None
        self._share: ShareGroups | None = None
        self._share_coordinator = share_coordinator
        self._streams: StreamsGroups | None = None
        self.registry = GroupRegistry(probe, wall_ms)
        self.offsets = GroupOffsets(self.log, self.registry, store, config, wall_ms)
        self.transactional_offsets = TransactionalOffsets(self.offsets, self.log, self.registry, config, wall_ms)
        self._expiry = OffsetExpiryTask(self.offsets, self.registry, config, wall_ms)
        self._load_listeners: list[Callable[[], None]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self._refusing = False

    @property
    def classic(self) -> ClassicGroups:
        """The classic groups, created with the first request of their protocol or the first record at a start.

        Their modules are imported then, unless the warm-up has done it (`broker.warm_up`).
        """
        if self._classic is None:
            from barnabas.broker.groups.classic.groups import ClassicGroups

            self._classic = ClassicGroups(
                group_log=self.log,
                registry=self.registry,
                settings=self._classic_settings,
                clock=self._clock,
                loop=self._loop,
                reads_only=self._reads_only,
            )
            if self._refusing:
                self._classic.stop()
        return self._classic

    @property
    def members(self) -> ClassicMembership:
        """The requests of the classic protocol's members, to groups of both protocols. Created at the first one."""
        if self._members is None:
            from barnabas.broker.groups.membership import ClassicMembership

            self._members = ClassicMembership(self.registry, self.log, self.classic, lambda: self.consumer)
        return self._members

    @property
    def consumer(self) -> ConsumerGroups:
        """The consumer groups, created with the first request of their protocol or the first record at a start.

        Their 21 modules are imported then. Most brokers never need them, and a start is about 50 ms faster without.
        """
        if self._consumer is None:
            from barnabas.broker.groups.consumer.groups import ConsumerGroups

            self._consumer = ConsumerGroups(
                group_log=self.log,
                registry=self.registry,
                classic=self.classic,
                context=self._context,
                loop=self._loop,
                reads_only=self._reads_only,
            )
            if self._refusing:
                self._consumer.stop()
        return self._consumer

    @cached_property
    def _share_context(self) -> ShareContext:
        from barnabas.broker.groups.share.context import ShareContext
        from barnabas.broker.groups.share.settings import ShareGroupSettings

        return ShareContext(ShareGroupSettings.of(self._config.broker), self._clock, lambda: self._store.image)

    @property
    def streams(self) -> StreamsGroups:
        """The streams groups, created with the first request of their protocol or the first record at a start."""
        if self._streams is None:
            from barnabas.broker.groups.streams.groups import StreamsGroups
            from barnabas.broker.groups.streams.settings import StreamsContext, StreamsGroupSettings

            settings = StreamsGroupSettings.of(self._config.broker)
            self._streams = StreamsGroups(
                group_log=self.log,
                registry=self.registry,
                classic=self.classic,
                context=StreamsContext(settings, self._clock, lambda: self._store.image),
                loop=self._loop,
                reads_only=self._reads_only,
            )
            if self._refusing:
                self._streams.stop()
        return self._streams

    @property
    def share(self) -> ShareGroups:
        """The share groups, created with the first request of their protocol or the first record at a start."""
        if self._share is None:
            from barnabas.broker.groups.share.groups import ShareGroups

            self._share = ShareGroups(
                group_log=self.log,
                registry=self.registry,
                offsets=self.offsets,
                context=self._share_context,
                coordinator=self._share_coordinator,
                loop=self._loop,
                reads_only=self._reads_only,
            )
            if self._refusing:
                self._share.stop()
        return self._share

    def delete_group(self, group_id: str) -> Appended:
        """Delete a group of any protocol with its offsets. Raises BrokerError, as `GroupOffsets.delete_group`."""
        self.offsets.ensure_exists(group_id)
        group = self.registry.get(group_id)
        if group is not None and group.group_type is GroupType.SHARE:
            return self.share.delete(group_id)
        return self.offsets.delete_group(group_id)

    def offsets_partition_of(self, group_id: str) -> int:
        """Return the number of the partition of `__consumer_offsets` that has the group, which may not exist yet."""
        return self.log.partition_of(group_id)

    def session_timeout_ms(self, group_id: str) -> int:
        """Return the session timeout of the members of a group that is not a classic group."""
        if self._share is not None and self._share.get(group_id) is not None:
            return self._share_context.settings_of(group_id).session_timeout_ms
        if self._streams is not None and self._streams.get(group_id) is not None:
            return self._streams.session_timeout_ms(group_id)
        return self._context.settings_of(group_id).session_timeout_ms

    def write_offsets_marker(self, number: int, end: TransactionEnd) -> Appended:
        """Append the end marker of a transaction to a partition of `__consumer_offsets`.

        The producer's pending offsets there are committed or dropped when this returns. The answer comes once the
        marker is as durable as the topic demands. Raises BrokerError, as `TransactionalOffsets.end`.
        """
        return self.transactional_offsets.end(number, end)

    def add_load_listener(self, listener: Callable[[], None]) -> None:
        """Call `listener` each time when the groups of another partition are served: markers may wait for that."""
        self._load_listeners.append(listener)

    def start(self) -> None:
        """Begin to load. Called before the first client is accepted, which would find its group unknown."""
        must_load = self._loading.begin()
        self._store.add_listener(self._image_changed)
        if must_load:
            self._tasks.append(self._loop.create_task(self._load()))
        if not self._reads_only:
            self._tasks.append(self._loop.create_task(self._expiry.run()))

    def refuse_members(self) -> None:
        """Answer NOT_COORDINATOR to waiting and to later requests: their clients look for the coordinator again."""
        self._refusing = True
        if self._classic is not None:
            self._classic.stop()
        if self._consumer is not None:
            self._consumer.stop()
        if self._share is not None:
            self._share.stop()
        if self._streams is not None:
            self._streams.stop()

    async def stop(self) -> None:
        """End the background tasks."""
        self._stopping = True
        await self.log.coordinator_log.finish_creation()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _load(self) -> None:
        await self._loading.run(self._read_partition, lambda: f"offsets={self.offsets.committed.count()}")

    async def _read_partition(self, number: int, partition: Partition) -> Loaded:
        """Load a partition, after which the offsets in topics that no longer exist are deleted.

        Those topics were deleted before a kill or during this load, when the offsets could not be deleted. A new topic
        of the same name must not be read from there.
        """
        from barnabas.broker.groups.offsets.loader import load_offsets_partition  # only if there is something to load

        buffer_bytes = self._config.broker.get_int("offsets.load.buffer.size")
        loaded: LoadedPartition = await self._loop.run_in_executor(
            self._blocking_io,
            load_offsets_partition,
            partition.log,
            lambda group_id: self.log.partition_of(group_id) == number,
            buffer_bytes,
        )
        if partition.is_retired:
            return Loaded(0)
        if loaded.skipped:
            logger.warning(
                "%s-%d has records that are not served here (of groups that belong to another partition), skipped=%d",
                OFFSETS_TOPIC,
                number,
                loaded.skipped,
            )
        self.offsets.committed.adopt(loaded.offsets)
        for record in loaded.pending:
            self.offsets.pending.put(record)
        newer = (*loaded.consumer_groups, *loaded.share_groups, *loaded.streams_groups)
        newer_ids = {record.key.group for record in newer}
        for group_id, value in loaded.groups.items():
            if group_id not in newer_ids:
                self.classic.load(group_id, value)
        if loaded.consumer_groups:
            self.consumer.load(loaded.consumer_groups)
        if loaded.share_groups:
            self.share.load(loaded.share_groups)
        if loaded.streams_groups:
            self.streams.load(loaded.streams_groups)
        gone = list(self._in_deleted_topics(loaded))
        return Loaded(loaded.records, None if self._reads_only else partial(self._loaded, gone))

    def _loaded(self, gone: list[OffsetCommitKey]) -> None:
        self._delete_offsets(gone)
        if self._share is not None:
            self._share.loaded()
        for listener in self._load_listeners:
            listener()

    def _in_deleted_topics(self, loaded: LoadedPartition) -> Iterator[OffsetCommitKey]:
        """Return the offsets in topics that do not exist; those of transactions name their topic without its id."""
        image = self._store.image
        found = [
            (OffsetCommitKey(group_id, topic, number), value.topic_id)
            for group_id, offsets in loaded.offsets.items()
            for (topic, number), value in offsets.items()
        ]
        found += [(record.key, record.pending.value.topic_id) for record in loaded.pending]
        for key, topic_id in found:
            if key.topic not in image.topics if topic_id == ZERO_UUID else topic_id not in image.names:
                yield key

    def _image_changed(self, before: MetadataImage, after: MetadataImage) -> None:
        """Pass changes of topics on to the event loop. Called on the metadata writer's thread."""
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
            self._loop.call_soon_threadsafe(self._topics_changed, changed, are_new)

    def _topics_changed(self, names: frozenset[str], are_new: bool) -> None:
        if self._consumer is not None:
            self._consumer.topics_changed(names, are_new=are_new)
        if self._share is not None:
            self._share.topics_changed(names)
        if self._streams is not None:
            self._streams.topics_changed(names)

    def _topics_deleted(self, topics: dict[str, bytes]) -> None:
        if self._stopping:
            return
        if OFFSETS_TOPIC in topics:
            self._forget_all()
            return
        self._delete_offsets([*self.offsets.committed.of_topics(topics), *self.offsets.pending.of_topics(topics)])
        if self._share is not None:
            self._share.topics_deleted(frozenset(topics.values()))
            if SHARE_STATE_TOPIC in topics:
                self._share.states_deleted()

    def _delete_offsets(self, keys: Iterable[OffsetCommitKey]) -> None:
        """Delete offsets in topics that were deleted."""
        by_group: dict[str, list[GroupRecord]] = {}
        topics = set()
        for key in dict.fromkeys(keys):
            by_group.setdefault(key.group, []).append(GroupRecord(key, None))
            topics.add(key.topic)
        for group_id, records in by_group.items():
            self.log.append(group_id, records, atomic=False).then(_log_failure)
        if by_group:
            logger.info("offsets of deleted topics are deleted, groups=%d topics=%s", len(by_group), sorted(topics))

    def _forget_all(self) -> None:
        logger.warning("%s was deleted: all groups and their offsets are forgotten", OFFSETS_TOPIC)
        for group in self.registry:
            if group.group_type is GroupType.CLASSIC:
                self.classic.unload(group.group_id)
            elif group.group_type is GroupType.SHARE:
                self.share.forget(group.group_id)
            elif group.group_type is GroupType.STREAMS:
                self.streams.forget(group.group_id)
            else:
                self.consumer.forget(group.group_id)
        self.offsets.committed.forget(list(self.offsets.committed.group_ids()))
        self.offsets.pending.clear()
        self.log.coordinator_log.forget_topic()


def _log_failure(error: BrokerError | None) -> None:
    if error is not None:
        logger.warning("offsets of a deleted topic stay until they expire: %s", error)
