"""ShareCoordinator: the states of share partitions, which are kept in `__share_group_state`.

The group coordinator begins and ends states, share partitions read and write theirs, and the persister's APIs
(`handlers/share`) do both for tools and tests. A state is what its records in the topic give (`shard`). The states of a
deleted topic are deleted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from barnabas.broker.network.deferred import Deferred
from barnabas.broker.share.shard import ShareRecord, StateChange, StateShard
from barnabas.broker.share.state_loading import ShareStateLoading
from barnabas.broker.share.state_log import ShareStateLog
from barnabas.broker.share.upkeep import ShareStateUpkeep
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.share.state_records import SharePartitionKey, ShareSnapshotValue
from barnabas.protocol.topic_name import SHARE_STATE_TOPIC

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from barnabas.broker.coordinator_log.log import Appended
    from barnabas.broker.coordinator_log.parts import LogParts
    from barnabas.broker.metadata.image import MetadataImage

logger = logging.getLogger(__name__)

T = TypeVar("T")

_SUMMARIES_PER_TURN = 100
"""Summaries that are read before other work of the event loop has its turn."""

TopicIdPartition = tuple[bytes, int]
"""The 16 bytes of a topic id, and a partition's number."""


class InitialShareState(NamedTuple):
    """A share partition's state before anything was delivered; `start_offset` -1: as share.auto.offset.reset says."""

    topic_id: bytes
    partition: int
    state_epoch: int
    start_offset: int


class ShareStateSummary(NamedTuple):
    """`start_offset` and `delivery_complete_count` are -1 for a share partition that has not delivered anything."""

    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = -1
    delivery_complete_count: int = -1
    error: ErrorCode = ErrorCode.NONE


class ShareCoordinator:
    """Serves the states of share partitions. Event loop only."""

    def __init__(self, parts: LogParts, *, blocking_io: Executor) -> None:
        self.log = ShareStateLog(parts)
        self._loop = parts.loop
        self._store = parts.store
        self._wall_ms = parts.wall_ms
        self._reads_only = parts.config.static.get_bool("read.only")
        self._loading = ShareStateLoading(parts, self.log, blocking_io, self._forget_deleted_topics)
        self._upkeep = ShareStateUpkeep(parts, self.log)
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False
        self.on_loss: Callable[[], None] = lambda: None
        """Called when all states are forgotten, because their topic was deleted."""
        self.on_deleted_topics: Callable[[], None] = lambda: None
        """Called when topics were deleted, and the image knows them no longer."""

    def start(self) -> None:
        """Begin to load. Called before the first client is accepted, which would find its state unknown."""
        if self._loading.begin():
            self._spawn(self._loading.run())
        self._store.add_listener(self._image_changed)
        if not self._reads_only:
            self._spawn(self._upkeep.prune_for_ever())
            self._spawn(self._upkeep.snapshot_for_ever())

    async def stop(self) -> None:
        """End the background tasks."""
        self._stopping = True
        await self.log.coordinator_log.finish_creation()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- for the group coordinator

    async def initialize(
        self, group_id: str, partitions: Sequence[InitialShareState]
    ) -> Mapping[TopicIdPartition, ErrorCode]:
        """Begin, or begin again, with states that have nothing delivered. They are on the disk then."""
        return await self._synced(
            group_id,
            {
                (each.topic_id, each.partition): self.begin(
                    SharePartitionKey(group_id, each.topic_id, each.partition), each.state_epoch, each.start_offset
                )
                for each in partitions
            },
        )

    async def delete(
        self, group_id: str, partitions: Sequence[TopicIdPartition]
    ) -> Mapping[TopicIdPartition, ErrorCode]:
        """Forget states. NONE for one that does not exist. The deletions are on the disk then."""
        return await self._synced(
            group_id, {each: self.forget(SharePartitionKey(group_id, *each)) for each in partitions}
        )

    async def read_summaries(
        self, group_id: str, partitions: Sequence[TopicIdPartition]
    ) -> Mapping[TopicIdPartition, ShareStateSummary]:
        """Return where share partitions begin; the defaults for one that does not exist."""
        summaries = {}
        for number, each in enumerate(partitions):
            if number % _SUMMARIES_PER_TURN == _SUMMARIES_PER_TURN - 1:
                await asyncio.sleep(0)
            found = await self.awaited(self.read_summary(SharePartitionKey(group_id, *each)))
            summaries[each] = ShareStateSummary(error=found.code) if isinstance(found, BrokerError) else found
        return summaries

    # -- one state

    def begin(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> Appended:
        """Begin a state. Raises nothing: the answer carries the error."""
        return self.log.change(key, lambda shard: [shard.initialize(key, state_epoch, start_offset, self._wall_ms())])

    def write(self, key: SharePartitionKey, change: StateChange) -> Appended:
        """Change a state. Raises nothing: the answer carries the error."""
        return self.log.change(
            key, lambda shard: [shard.write(key, change, self.log.updates_per_snapshot, self._wall_ms())]
        )

    def read(self, key: SharePartitionKey, leader_epoch: int) -> Deferred[ShareSnapshotValue | BrokerError]:
        """Return a state to the leader of a partition, and fence leaders with lower epochs."""
        answer: Deferred[ShareSnapshotValue | BrokerError] = Deferred()
        found: list[ShareSnapshotValue] = []

        def plan(shard: StateShard) -> list[ShareRecord]:
            state, record = shard.read(key, leader_epoch, self.log.updates_per_snapshot, self._wall_ms())
            found.append(state)
            return [] if record is None else [record]

        self.log.change(key, plan).then(lambda error: answer.resolve(found[0] if error is None else error))
        return answer

    def forget(self, key: SharePartitionKey) -> Appended:
        """Delete a state. Raises nothing: the answer carries the error."""

        def plan(shard: StateShard) -> list[ShareRecord]:
            record = shard.delete(key)
            return [] if record is None else [record]

        return self.log.change(key, plan)

    def read_summary(self, key: SharePartitionKey) -> Deferred[ShareStateSummary | BrokerError]:
        """Return where a share partition begins; the defaults if it was not initialized."""
        answer: Deferred[ShareStateSummary | BrokerError] = Deferred()
        found = [ShareStateSummary()]

        def plan(shard: StateShard) -> list[ShareRecord]:
            state = shard.summary(key)
            if state is not None:
                found[0] = _summary_of(state)
            return []

        self.log.change(key, plan).then(lambda error: answer.resolve(found[0] if error is None else error))
        return answer

    # -- upkeep

    async def _synced(
        self, group_id: str, answers: Mapping[TopicIdPartition, Appended]
    ) -> Mapping[TopicIdPartition, ErrorCode]:
        """Wait for answers, and until what they changed is on the disk: the group's next record relies on it."""
        codes = {each: _code(await self.awaited(answer)) for each, answer in answers.items()}
        done = [each for each, code in codes.items() if not code]
        numbers = {each: self.log.number_of(SharePartitionKey(group_id, *each)) for each in done}
        syncs = {number: self.log.coordinator_log.synced(number) for number in set(numbers.values())}
        synced = {number: _code(await self.awaited(sync)) for number, sync in syncs.items()}
        return codes | {each: synced[number] for each, number in numbers.items()}

    async def awaited(self, answer: Deferred[T]) -> T:
        """Return the value of a deferred answer."""
        late: asyncio.Future[T] = self._loop.create_future()

        def resolved(value: T) -> None:
            if not late.done():  # else the task that waits was cancelled
                late.set_result(value)

        answer.then(resolved)
        return await late

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _image_changed(self, before: MetadataImage, after: MetadataImage) -> None:
        """Pass deletions of topics on to the event loop. Called on the metadata writer's thread."""
        if before.names is after.names:
            return
        gone = [name for topic_id, name in before.names.items() if topic_id not in after.names]
        if gone:
            self._loop.call_soon_threadsafe(self._topics_deleted, gone)

    def _topics_deleted(self, names: Iterable[str]) -> None:
        if self._stopping:
            return
        if SHARE_STATE_TOPIC in names:
            logger.warning("%s was deleted: share groups begin again", SHARE_STATE_TOPIC)
            self.log.forget_all()
            self.on_loss()
            return
        self.on_deleted_topics()
        for number in list(self.log.shards):
            self._forget_deleted_topics(number)

    def _forget_deleted_topics(self, number: int) -> None:
        if self._stopping or self._reads_only or self.log.coordinator_log.is_loading(number):
            return
        records = self.log.shards[number].of_deleted_topics()
        if records:
            self.log.append(number, records).then(_note_failure)


def _code(error: BrokerError | None) -> ErrorCode:
    return ErrorCode.NONE if error is None else error.code


def _summary_of(state: ShareSnapshotValue) -> ShareStateSummary:
    return ShareStateSummary(state.state_epoch, state.leader_epoch, state.start_offset, state.delivery_complete_count)


def _note_failure(error: BrokerError | None) -> None:
    if error is not None:
        logger.warning("the share groups' state of deleted topics is kept until the next start: %s", error)
