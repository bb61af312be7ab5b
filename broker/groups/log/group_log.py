"""GroupLog: the only writer of `__consumer_offsets`.

A change is appended first, as one batch in its group's partition, and then applied to memory by the same replay that a
start uses: memory always equals the log, also after a failed append. A change is answered once it is as durable as the
topic's flush settings demand (flush.messages: after the flusher's group commit).

The topic is created at its first use (`topic_creation`). Changes that arrive before their group's partition exists are
appended afterwards, in the order of their arrival. A partition serves once it is loaded. Until then its groups get
COORDINATOR_LOAD_IN_PROGRESS (14), which clients retry, and COORDINATOR_NOT_AVAILABLE (15) if it could not be loaded or
its directory is offline. The partition count decides where a group's records are, so it stays what it was when the
topic was created or this broker started. Source: Kafka's CoordinatorRuntime.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.groups.log.offsets_topic import OFFSETS_TOPIC, partition_of
from barnabas.broker.groups.log.records import GroupRecord, encode_batches
from barnabas.broker.groups.log.topic_creation import OffsetsTopicCreation, Then
from barnabas.broker.network.deferred import Deferred
from barnabas.protocol.compression import Codec
from barnabas.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.metadata_changes import MetadataChanges
    from barnabas.broker.partitions.flush_waits import FlushWaits
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.partitions.registry import PartitionRegistry

logger = logging.getLogger(__name__)

Appended = Deferred[BrokerError | None]
"""None once the records are as durable as the topic demands, or the error of the append."""

Replay = Callable[[GroupRecord], None]
"""Applies a record of the log to memory."""

_AS_NOT_AVAILABLE = (
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.TOPIC_ALREADY_EXISTS,
)
"""Errors of the topic that clients of a group get as COORDINATOR_NOT_AVAILABLE, as in Kafka."""


class GroupLog:
    """Appends the records of groups, in the event loop."""

    def __init__(
        self,
        *,
        partitions: PartitionRegistry,
        store: MetadataView,
        changes: MetadataChanges,
        config: LiveConfig,
        flush_waits: FlushWaits,
        wall_ms: Callable[[], int],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._partitions = partitions
        self._store = store
        self._config = config
        self._flush_waits = flush_waits
        self._wall_ms = wall_ms
        self._creation = OffsetsTopicCreation(changes, config, self.partition_of, loop)
        self._replays: list[Replay] = []
        self._flushing: dict[int, int] = {}
        """By partition: the offset up to which a flush makes everything in memory durable."""
        self._loading: set[int] = set()
        self._unloadable: set[int] = set()
        topic = store.image.topics.get(OFFSETS_TOPIC)
        self._partition_count = 0 if topic is None else len(topic.partitions)

    def add_replay(self, replay: Replay) -> None:
        """Call `replay` with every record that is appended from now on."""
        self._replays.append(replay)

    @property
    def exists(self) -> bool:
        """Whether the topic exists."""
        return OFFSETS_TOPIC in self._store.image.topics

    def partition_of(self, group_id: str) -> int:
        """Return the number of the group's partition."""
        if not self._partition_count and self.exists:  # a client created it
            self._partition_count = len(self._store.image.topics[OFFSETS_TOPIC].partitions)
        count = self._partition_count or self._config.broker.get_int("offsets.topic.num.partitions")
        return partition_of(group_id, count)

    def ensure_loaded(self, group_id: str) -> None:
        """Raise BrokerError COORDINATOR_LOAD_IN_PROGRESS or COORDINATOR_NOT_AVAILABLE unless the group is served."""
        if self._loading or self._unloadable:
            self._ensure_loaded(self.partition_of(group_id))

    def ensure_all_loaded(self) -> None:
        """Raise BrokerError COORDINATOR_LOAD_IN_PROGRESS while any partition is loaded, for requests about all groups.

        Partitions that could not be loaded are ignored: with one disk of several offline, the others' groups are
        listed.
        """
        for partition in self._loading:
            self._ensure_loaded(partition)

    def begin_loading(self, partition: int) -> None:
        """Refuse the groups of a partition until `end_loading`."""
        self._loading.add(partition)

    def end_loading(self, partition: int, *, failed: bool = False) -> None:
        """Serve the groups of a partition from now on, or never if it could not be loaded."""
        self._loading.discard(partition)
        if failed:
            self._unloadable.add(partition)

    def forget_topic(self) -> None:
        """Reset everything after the topic was deleted: the next use creates it again."""
        self._partition_count = 0
        self._creation.hurry()
        self._flushing.clear()
        self._loading.clear()
        self._unloadable.clear()

    def append(self, group_id: str, records: Sequence[GroupRecord], *, atomic: bool = True) -> Appended:
        """Append `records`, all of that group, and replay them.

        They are one batch, or several if `atomic` is False. They are replayed when this returns, unless the topic has
        to be created first. Raises nothing: the answer carries the error.
        """
        if self._is_to_come(group_id):
            answer: Appended = Deferred()
            self._when_created(group_id, records, atomic, answer)
            return answer
        return self._append(group_id, records, atomic)

    def settled(self, group_id: str) -> Appended:
        """Return an answer that comes once everything appended so far to the group's partition is durable.

        Requests that change nothing wait for it: otherwise a power cut could leave a client ahead of the log.
        """
        answer: Appended = Deferred()
        number = self.partition_of(group_id)
        flush_to = self._flushing.get(number)
        partition = None if flush_to is None else self._partitions.get(OFFSETS_TOPIC, number)
        if flush_to is None:
            answer.resolve(None)
        elif partition is None:
            answer.resolve(_as_coordinator_error(self._partitions.refusal(OFFSETS_TOPIC, number)))
        else:
            self._wait_for_flush(number, partition, flush_to, answer)
        return answer

    def when_ready(self, group_id: str, then: Then) -> None:
        """Call `then` once the group's partition exists: immediately, unless the topic has to be created first.

        A request that depends on earlier ones has to wait: before the topic exists, appends are not replayed.
        """
        if not self._is_to_come(group_id):
            then(None)
            return
        self._creation.wait(group_id, lambda error: then(None if error is None else _as_coordinator_error(error)))

    async def finish_creation(self) -> None:
        """Return once all partitions of the topic exist. Called when the broker stops."""
        await self._creation.finish()

    def _ensure_loaded(self, partition: int) -> None:
        if partition in self._loading:
            raise BrokerError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{OFFSETS_TOPIC}-{partition} is being loaded, try again"
            )
        if partition in self._unloadable:
            raise BrokerError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                f"{OFFSETS_TOPIC}-{partition} could not be loaded; the broker's log says why",
            )

    def _is_to_come(self, group_id: str) -> bool:
        """Return whether the group's partition does not exist yet; the metadata has the topic before its logs exist."""
        return not self.exists or self._creation.awaits(group_id)

    def _when_created(self, group_id: str, records: Sequence[GroupRecord], atomic: bool, answer: Appended) -> None:
        def created(error: BrokerError | None) -> None:
            if error is not None:
                answer.resolve(error)
            else:
                self._append(group_id, records, atomic).then(answer.resolve)

        self.when_ready(group_id, created)

    def _append(self, group_id: str, records: Sequence[GroupRecord], atomic: bool) -> Appended:
        answer: Appended = Deferred()
        number = self.partition_of(group_id)
        try:
            self._ensure_loaded(number)
            partition = self._partitions.get(OFFSETS_TOPIC, number)
            if partition is None:
                raise self._partitions.refusal(OFFSETS_TOPIC, number)
            flush_to = self._write(partition, records, atomic)
        except BrokerError as error:
            answer.resolve(_as_coordinator_error(error))
            return answer
        for record in records:
            for replay in self._replays:
                replay(record)
        if flush_to is None:
            answer.resolve(None)
        else:
            self._flushing[number] = flush_to
            self._wait_for_flush(number, partition, flush_to, answer)
        return answer

    def _wait_for_flush(self, number: int, partition: Partition, flush_to: int, answer: Appended) -> None:
        def flushed(failed: Exception | None) -> None:
            if failed is None and self._flushing.get(number) == flush_to:
                del self._flushing[number]
            answer.resolve(_flush_error(number, failed))

        self._flush_waits.wait(partition, flush_to, flushed)

    def _write(self, partition: Partition, records: Sequence[GroupRecord], atomic: bool) -> int | None:
        """Append; return the offset up to which a flush has to precede the answer, if any. Raises BrokerError."""
        batches = encode_batches(
            records,
            codec=Codec(self._config.broker.get_int("offsets.topic.compression.codec")),
            timestamp_ms=self._wall_ms(),
            max_bytes=partition.log.config.max_message_bytes,
            atomic=atomic,
        )
        appended = partition.append_internal(memoryview(batches))
        return appended.last_offset + 1 if appended.flush_due else None


def _as_coordinator_error(error: BrokerError) -> BrokerError:
    if error.code in _AS_NOT_AVAILABLE:
        return BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{OFFSETS_TOPIC} cannot be written: {error}")
    return error


def _flush_error(number: int, failed: Exception | None) -> BrokerError | None:
    if failed is None:
        return None
    message = f"{OFFSETS_TOPIC}-{number} could not be flushed: {failed}"
    return BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, message)
