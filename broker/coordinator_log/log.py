"""CoordinatorLog: the only writer of a coordinator's topic.

A change is appended first, as batches in the partition of its key, and then applied to memory by the same replay that a
start uses: memory always equals the log, also after a failed append. A change is answered once it is as durable as the
topic's flush settings demand (flush.messages: after the flusher's group commit), and with standby.min.acks=1 once the
standby has it. Without a standby in time nothing is appended: COORDINATOR_NOT_AVAILABLE.

The topic is created at its first use (`creation`). Changes that arrive before their partition exists are appended
afterwards, in the order of their arrival. A partition serves once it is loaded. Until then its keys get
COORDINATOR_LOAD_IN_PROGRESS (14), which clients retry, and COORDINATOR_NOT_AVAILABLE (15) if it could not be loaded or
has no log: while another client creates the topic, on a full disk, and in an offline directory. The partition count
decides where the records of a key are, so it stays what it was when the topic was created or this broker started.
Source: Kafka's CoordinatorRuntime.

A client that is refused a change tries again immediately, and finds its coordinator here again: on a full disk one
consumer made 1,000 generations a second. So the answer to a change that could not be written (15) waits for
REFUSAL_SECONDS. A connection has one such request at a time, which bounds their number. It also makes what comes behind
wait: clients that commit offsets after each record have many commits on the way, and heartbeats behind them, so commits
are refused at once. Clients pause by themselves before they repeat one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.broker.coordinator_log.creation import Then, TopicCreation
from barnabas.broker.coordinator_log.topic import partition_of
from barnabas.broker.network.deferred import Deferred
from barnabas.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.coordinator_log.parts import LogParts
    from barnabas.broker.metadata.own_topics import OwnTopic
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.storage.log.append import AppendResult

Appended = Deferred[BrokerError | None]
"""None once the records are as durable as the topic demands, or the error of the append."""

Encode = Callable[[int], bytearray]
"""Returns whole batches, given the size limit of one. Raises BrokerError."""

Write = Callable[["Partition"], "AppendResult"]
"""Appends to a partition of the topic. Raises BrokerError."""

_AS_NOT_AVAILABLE: Final = (
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.TOPIC_ALREADY_EXISTS,
    ErrorCode.NOT_ENOUGH_REPLICAS,
)
"""Errors of the topic that a coordinator's clients get as COORDINATOR_NOT_AVAILABLE, as in Kafka."""

REFUSAL_SECONDS: Final = 1.0
"""How long a change that could not be written waits for its answer. Shorter than a heartbeat interval (3 s)."""

_NUMBERS_MAX: Final = 10_000


class CoordinatorLog:
    """Appends a coordinator's records, in the event loop. A key is a group id or a transactional id."""

    def __init__(self, topic: OwnTopic, parts: LogParts) -> None:
        self.topic = topic
        self._partitions = parts.partitions
        self._store = parts.store
        self._config = parts.config
        self._flush_waits = parts.flush_waits
        self._loop = parts.loop
        self._creation = TopicCreation(topic, parts.changes, self.partition_of, parts.loop)
        self._flushing: dict[int, int] = {}
        """By partition: the offset up to which a flush makes everything in memory durable."""
        self._loading: set[int] = set()
        self._unloadable: set[int] = set()
        """Partitions that could not be read."""
        existing = parts.store.image.topics.get(topic.name)
        self._partition_count = 0 if existing is None else len(existing.partitions)
        self._numbers: dict[str, int] = {}
        """Partition numbers of keys in use: Java's hash costs 1 us, and a transaction needs it seven times."""

    @property
    def exists(self) -> bool:
        """Whether the topic exists."""
        return self.topic.name in self._store.image.topics

    @property
    def is_complete(self) -> bool:
        """Whether every partition of the topic has a log and is loaded."""
        topic = self._store.image.topics.get(self.topic.name)
        numbers = () if topic is None else topic.partitions
        has_logs = all(self._partitions.get(self.topic.name, number) is not None for number in numbers)
        return has_logs and not self._loading and not self._unloadable

    @property
    def has_unflushed(self) -> bool:
        """Whether a flush may be due for anything in memory, or the standby may not have it."""
        return bool(self._flushing) or self._partitions.replication.is_required

    def partition_of(self, key: str) -> int:
        """Return the number of the key's partition."""
        number = self._numbers.get(key)
        if number is None:
            number = self._partition_of(key)
            if self._partition_count:
                if len(self._numbers) >= _NUMBERS_MAX:
                    self._numbers.clear()
                self._numbers[key] = number
        return number

    def _partition_of(self, key: str) -> int:
        if not self._partition_count and self.exists:  # a client created it
            self._partition_count = len(self._store.image.topics[self.topic.name].partitions)
        count = self._partition_count or self.topic.partition_count(self._config.broker)
        return partition_of(key, count)

    def ensure_loaded(self, key: str) -> None:
        """Raise BrokerError COORDINATOR_LOAD_IN_PROGRESS or COORDINATOR_NOT_AVAILABLE unless the key is served."""
        number = self.partition_of(key)
        if self._loading or self._unloadable:
            self._ensure_loaded(number)
        if self._partitions.get(self.topic.name, number) is None and not self._is_to_come(key):
            raise self._as_coordinator_error(self._partitions.refusal(self.topic.name, number))

    def ensure_all_loaded(self) -> None:
        """Raise BrokerError COORDINATOR_LOAD_IN_PROGRESS while any partition is loaded, for requests about all keys.

        Partitions that could not be loaded are ignored: with one disk of several offline, the others' keys are listed.
        """
        for partition in self._loading:
            self._ensure_loaded(partition)

    def begin_loading(self, partition: int) -> None:
        """Refuse the keys of a partition until `end_loading`."""
        self._loading.add(partition)

    def is_loading(self, partition: int) -> bool:
        """Return whether the keys of a partition are refused until it is loaded."""
        return partition in self._loading

    def end_loading(self, partition: int, *, failed: bool = False) -> None:
        """Serve the keys of a partition from now on, or never if it could not be loaded."""
        self._loading.discard(partition)
        if failed:
            self._unloadable.add(partition)

    def forget_topic(self) -> None:
        """Reset everything after the topic was deleted: the next use creates it again."""
        self._partition_count = 0
        self._numbers.clear()
        self._creation.hurry()
        self._flushing.clear()
        self._loading.clear()
        self._unloadable.clear()

    def append(self, key: str, encode: Encode, replay: Callable[[], None], *, pauses: bool = True) -> Appended:
        """Append batches to the key's partition, then call `replay`, which applies them to memory.

        `replay` has been called when this returns, unless the append failed or the topic has to be created first.
        Raises nothing: the answer carries the error, without `pauses` at once.
        """
        if self._is_to_come(key):
            answer: Appended = Deferred()
            self._when_created(key, encode, replay, answer, pauses=pauses)
            return answer
        return self._append(key, encode, replay, pauses=pauses)

    def append_to(self, number: int, write: Write, replay: Callable[[], None], *, pauses: bool = True) -> Appended:
        """Let `write` append to an existing partition, then call `replay`, which applies the change to memory.

        Raises nothing: the answer carries the error, COORDINATOR_LOAD_IN_PROGRESS while the partition is loaded.
        """
        answer: Appended = Deferred()
        try:
            if self._loading or self._unloadable:
                self._ensure_loaded(number)
            partition = self._partitions.get(self.topic.name, number)
            if partition is None:
                raise self._partitions.refusal(self.topic.name, number)
            self._partitions.replication.ensure_in_time(partition)
            appended = write(partition)
        except BrokerError as error:
            self._refuse(self._as_coordinator_error(error), answer.resolve, pauses=pauses)
            return answer
        replay()
        if appended.flush_due:
            flush_to = self._flushing[number] = appended.last_offset + 1
            self._wait_for_flush(number, partition, flush_to, answer)
        else:
            answer.resolve(None)
        return self._when_replicated(partition, appended.last_offset + 1, answer)

    def settled(self, key: str) -> Appended:
        """Return an answer that comes once everything appended so far to the key's partition is durable and replicated.

        Requests that change nothing wait for it: otherwise a power cut could leave a client ahead of the log.
        """
        answer: Appended = Deferred()
        number = self.partition_of(key)
        flush_to = self._flushing.get(number)
        is_required = self._partitions.replication.is_required
        partition = self._partitions.get(self.topic.name, number) if flush_to is not None or is_required else None
        if flush_to is None:
            answer.resolve(None)
        elif partition is None:
            answer.resolve(self._as_coordinator_error(self._partitions.refusal(self.topic.name, number)))
        else:
            self._wait_for_flush(number, partition, flush_to, answer)
        return answer if partition is None else self._when_replicated(partition, partition.log.log_end_offset, answer)

    def synced(self, number: int) -> Appended:
        """Return an answer that comes once everything appended so far to a partition is on the disk.

        Whatever the topic's flush settings: for records on which one in another topic relies.
        """
        answer: Appended = Deferred()
        partition = self._partitions.get(self.topic.name, number)
        if partition is None:
            answer.resolve(self._as_coordinator_error(self._partitions.refusal(self.topic.name, number)))
        else:
            self._wait_for_flush(number, partition, partition.log.log_end_offset, answer)
        return answer

    def when_ready(self, key: str, then: Then, *, pauses: bool = True) -> None:
        """Call `then` once the key's partition exists: immediately, unless the topic has to be created first.

        A request that depends on earlier ones has to wait: before the topic exists, appends are not replayed.
        """
        if not self._is_to_come(key):
            then(None)
            return

        def created(error: BrokerError | None) -> None:
            if error is None:
                then(None)
            else:
                self._refuse(self._as_coordinator_error(error), then, pauses=pauses)

        self._creation.wait(key, created)

    async def finish_creation(self) -> None:
        """Return once all partitions of the topic exist. Called when the broker stops."""
        await self._creation.finish()

    def _refuse(self, error: BrokerError, then: Then, *, pauses: bool) -> None:
        """Pass the error of a change on; later if clients would try again at once."""
        if pauses and error.code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
            self._loop.call_later(REFUSAL_SECONDS, then, error)
        else:
            then(error)

    def _ensure_loaded(self, partition: int) -> None:
        if partition in self._loading:
            raise BrokerError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self.topic.name}-{partition} is being loaded, try again"
            )
        if partition in self._unloadable:
            raise BrokerError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                f"{self.topic.name}-{partition} could not be loaded; the broker's log says why",
            )

    def _is_to_come(self, key: str) -> bool:
        """Return whether the key's partition does not exist yet; the metadata has the topic before its logs exist."""
        return self.topic.name not in self._store.image.topics or self._creation.awaits(key)

    def _when_created(
        self, key: str, encode: Encode, replay: Callable[[], None], answer: Appended, *, pauses: bool
    ) -> None:
        def created(error: BrokerError | None) -> None:
            if error is not None:
                answer.resolve(error)
            else:
                self._append(key, encode, replay, pauses=pauses).then(answer.resolve)

        self.when_ready(key, created, pauses=pauses)

    def _append(self, key: str, encode: Encode, replay: Callable[[], None], *, pauses: bool) -> Appended:
        def write(partition: Partition) -> AppendResult:
            return partition.append_internal(memoryview(encode(partition.log.config.max_message_bytes)))

        return self.append_to(self.partition_of(key), write, replay, pauses=pauses)

    def _wait_for_flush(self, number: int, partition: Partition, flush_to: int, answer: Appended) -> None:
        def flushed(failed: Exception | None) -> None:
            if failed is None and self._flushing.get(number) == flush_to:
                del self._flushing[number]
            answer.resolve(None if failed is None else self._flush_error(number, failed))

        self._flush_waits.wait(partition, flush_to, flushed)

    def _when_replicated(self, partition: Partition, end_offset: int, flushed: Appended) -> Appended:
        if partition.copy is None:
            return flushed
        answer: Appended = Deferred()
        waited = partition.when_replicated(end_offset, flushed) or flushed
        waited.then(lambda error: answer.resolve(None if error is None else self._as_coordinator_error(error)))
        return answer

    def _as_coordinator_error(self, error: BrokerError) -> BrokerError:
        if error.code in _AS_NOT_AVAILABLE:
            return BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{self.topic.name} cannot be written: {error}")
        if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER:  # a standby takes over, and is the coordinator then
            return BrokerError(ErrorCode.NOT_COORDINATOR, error.message)
        return error

    def _flush_error(self, number: int, failed: Exception) -> BrokerError:
        message = f"{self.topic.name}-{number} could not be flushed: {failed}"
        return BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, message)
