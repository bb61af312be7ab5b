"""GroupLog: the one door to `__consumer_offsets`.

A change is appended first, as one batch to its group's partition, and then becomes state by the same `replay` that a
start gives the records to: what is in memory is always what the log says. It is answered once it is as durable as the
topic's flush settings ask (flush.messages: after the flusher's group commit).

The topic is made at its first use (`offsets_topic_creation`); who comes before its group's partition is there is
appended afterwards, in the order in which they came. A partition serves once it is loaded: COORDINATOR_LOAD_IN_PROGRESS
(14) before, which clients ask again for, and COORDINATOR_NOT_AVAILABLE (15) where it could not be loaded or its
directory is offline. The number of partitions is what the topic had when it was made or when this broker started, since
it decides where a group's records are. Source: Kafka's CoordinatorRuntime.
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
"""None once the records are durable as the topic asks, or why they are not there."""

Replay = Callable[[GroupRecord], None]
"""Makes a record of the log state."""

_AS_NOT_AVAILABLE = (
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.TOPIC_ALREADY_EXISTS,
)
"""Faults of the topic that a client of a group is told about as COORDINATOR_NOT_AVAILABLE, as in Kafka."""


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
        """By partition: up to which offset it has to be flushed until all that is state is durable."""
        self._loading: set[int] = set()
        self._unloadable: set[int] = set()
        topic = store.image.topics.get(OFFSETS_TOPIC)
        self._partition_count = 0 if topic is None else len(topic.partitions)

    def add_replay(self, replay: Replay) -> None:
        """Call `replay` with every record, once it is appended, from now on."""
        self._replays.append(replay)

    @property
    def exists(self) -> bool:
        """Whether the topic is there."""
        return OFFSETS_TOPIC in self._store.image.topics

    def partition_of(self, group_id: str) -> int:
        """The number of the group's partition of the topic."""
        if not self._partition_count and self.exists:  # somebody else made it
            self._partition_count = len(self._store.image.topics[OFFSETS_TOPIC].partitions)
        count = self._partition_count or self._config.broker.get_int("offsets.topic.num.partitions")
        return partition_of(group_id, count)

    def ensure_loaded(self, group_id: str) -> None:
        """Raises BrokerError COORDINATOR_LOAD_IN_PROGRESS or COORDINATOR_NOT_AVAILABLE."""
        if self._loading or self._unloadable:
            self._ensure_loaded(self.partition_of(group_id))

    def ensure_all_loaded(self) -> None:
        """For what is about all groups. Raises BrokerError COORDINATOR_LOAD_IN_PROGRESS.

        What could not be loaded is left out: on one disk of several the groups that are there can still be listed.
        """
        for partition in self._loading:
            self._ensure_loaded(partition)

    def begin_loading(self, partition: int) -> None:
        """Refuse its groups until `end_loading`."""
        self._loading.add(partition)

    def end_loading(self, partition: int, *, failed: bool = False) -> None:
        """Serve its groups from now on, or never, if it failed."""
        self._loading.discard(partition)
        if failed:
            self._unloadable.add(partition)

    def forget_topic(self) -> None:
        """The topic was deleted: the next use makes it anew."""
        self._partition_count = 0
        self._creation.hurry()
        self._flushing.clear()
        self._loading.clear()
        self._unloadable.clear()

    def append(self, group_id: str, records: Sequence[GroupRecord], *, atomic: bool = True) -> Appended:
        """Append `records`, which are all of that group's partition, and make them state.

        One batch; with `atomic` False as many as it takes. The state is there when this returns, unless the topic has
        to be made first. Raises nothing: what went wrong is what the answer brings.
        """
        if self._is_to_come(group_id):
            answer: Appended = Deferred()
            self._when_created(group_id, records, atomic, answer)
            return answer
        return self._append(group_id, records, atomic)

    def settled(self, group_id: str) -> Appended:
        """For who changes nothing: comes once all that was appended to the group's partition so far is durable.

        What is told of a group has to be true of its log, too, or a power cut would leave a client ahead of it.
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
        """Call `then` once the group's partition is there, which is at once unless the topic has to be made first.

        For who decides by what others have written: two who came before the topic would not see each other.
        """
        if not self._is_to_come(group_id):
            then(None)
            return
        self._creation.wait(group_id, lambda error: then(None if error is None else _as_coordinator_error(error)))

    async def finish_creation(self) -> None:
        """At the stop: what is still to be made of the topic is there when this returns."""
        await self._creation.finish()

    def _ensure_loaded(self, partition: int) -> None:
        if partition in self._loading:
            raise BrokerError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{OFFSETS_TOPIC}-{partition} is being loaded, ask again"
            )
        if partition in self._unloadable:
            raise BrokerError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                f"{OFFSETS_TOPIC}-{partition} could not be loaded; the broker's log says why",
            )

    def _is_to_come(self, group_id: str) -> bool:
        """Whether the group's partition is still to be made; the metadata names the topic before its logs are there."""
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
        """The offset up to which it has to be flushed before the answer, if it has. Raises BrokerError."""
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
