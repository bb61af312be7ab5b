"""The assigned partitions and their fetched records, handed out a batch per partition in turn.

Shared by the parts of one consumer: the reader takes batches from it, `assign`, rebalances and seeks change it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from barnabas.clients.config import ConsumerConfig
from barnabas.clients.consumer.assigned_partition import NO_POSITION, AssignedPartition
from barnabas.clients.consumer.fetcher import Fetcher
from barnabas.clients.errors import ClientError, ClosedError, CorruptBatchError
from barnabas.protocol.topic_partition import TopicPartition


class RecordQueue:
    """Owned by one consumer. `open` it with a fetcher: other methods raise ClosedError before that and after close.

    `current` is the partition whose decoded batch the iteration is handing out, the first in the queue. Setting it to
    None makes the iteration look at the queue, and at pending rebalances and commits, before its next record. So the
    hot path of `async for` needs no other check.
    """

    def __init__(self, config: ConsumerConfig) -> None:
        self.current: AssignedPartition | None = None
        self.closing = False
        self._closed = False
        self._config = config
        self._fetcher: Fetcher | None = None
        self._turns: deque[AssignedPartition] = deque()  # partitions with data or an error; the first one has its turn
        self._reading = False

    def open(self, fetcher: Fetcher) -> None:
        """Take records from this fetcher. Fetching starts with the first read."""
        self._fetcher = fetcher

    def begin_closing(self) -> bool:
        """Fail waiting and later reads with ClosedError. Returns False if not open, or closing already."""
        if self.closing or self._closed or self._fetcher is None:
            return False
        self.closing = True
        self._fetcher.arrived.set()
        return True

    async def close(self) -> None:
        """Stop fetching. Idempotent."""
        self._closed = True
        if self._fetcher is not None:
            await self._fetcher.close()
            self._fetcher.arrived.set()

    @property
    def fetcher(self) -> Fetcher:
        """The fetcher. Raises ClosedError if the queue is not open."""
        if self._fetcher is None or self._closed:
            raise ClosedError(
                "the consumer is closed" if self._closed else "the consumer is not started: use async with"
            )
        return self._fetcher

    def ensure_open(self) -> None:
        """Raises ClosedError if the queue is not open."""
        _ = self.fetcher

    # assigned partitions

    @property
    def states(self) -> dict[TopicPartition, AssignedPartition]:
        """The assigned partitions."""
        return self.fetcher.states

    def named_states(self, partitions: Iterable[TopicPartition]) -> list[AssignedPartition]:
        """The states of these partitions, or of all assigned ones if none is named. Raises ValueError."""
        states = self.states
        named = [TopicPartition(*partition) for partition in partitions] or list(states)
        missing = [partition for partition in named if partition not in states]
        if missing:
            raise ValueError(f"{missing[0]} is not assigned to this consumer")
        return [states[partition] for partition in named]

    def positions(self) -> dict[TopicPartition, int]:
        """The positions of the assigned partitions that have one."""
        return {each: state.position for each, state in self.states.items() if state.position != NO_POSITION}

    def assign(self, wanted: Iterable[TopicPartition], committed: Mapping[TopicPartition, int]) -> None:
        """Replace the assignment. Kept partitions keep their position, new ones start at `committed` or without one."""
        fetcher = self.fetcher
        assigned = frozenset(wanted)
        for partition in [partition for partition in fetcher.states if partition not in assigned]:
            state = fetcher.states.pop(partition)
            fetcher.release(state.move_to(NO_POSITION))
        for partition in wanted:
            if partition not in fetcher.states:
                state = fetcher.states[partition] = AssignedPartition(partition, self._config.max_partition_bytes)
                if partition in committed:
                    state.move_to(committed[partition])
        if self.current is not None and self.current.topic_partition not in assigned:
            self.current = None
        self._turns = deque(state for state in self._turns if state.topic_partition in assigned)
        self._fetch_on()

    def move(self, state: AssignedPartition, offset: int) -> None:
        """Continue this partition at `offset`."""
        fetcher = self.fetcher
        fetcher.release(state.move_to(offset))
        if self.current is state:
            self.current = None
        fetcher.interrupt(state.topic_partition)
        self._fetch_on()

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Skip these partitions (all, if none is named) until `resume`, keeping their fetched records."""
        for state in self.named_states(partitions):
            state.paused = True
            if self.current is state:
                self.current = None

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Undo `pause`."""
        fetcher = self.fetcher
        for state in self.named_states(partitions):
            if not state.paused:
                continue
            state.paused = False
            if state.has_data or state.error is not None:
                self._enqueue(state)
            elif not state.in_request:
                fetcher.interrupt(state.topic_partition)
        fetcher.arrived.set()
        self._fetch_on()

    # reading

    def start_reading(self) -> Fetcher:
        """Start fetching with the first read, so that a seek before it costs nothing."""
        fetcher = self.fetcher
        if not self._reading:
            self._reading = True
            fetcher.changed()
        return fetcher

    def interrupt_reader(self) -> None:
        """Make a waiting read, or the next step of the iteration, look at its consumer again."""
        self.current = None
        if self._fetcher is not None:
            self._fetcher.arrived.set()

    def next_batch(self) -> AssignedPartition | None:
        """Return the partition whose turn it is, with a decoded batch that has records; None if nothing is fetched.

        Raises that partition's error, ClosedError while the consumer closes.
        """
        fetcher = self.fetcher
        if self.closing:
            raise ClosedError("the consumer is closed")
        if fetcher.ready:
            self._turns.extend(fetcher.ready)
            fetcher.ready.clear()
        while self._turns:
            state = self._turns[0]
            if state.paused or fetcher.states.get(state.topic_partition) is not state:
                self._dequeue()
            elif state.index < len(state.records):
                return state
            elif state.slices:
                self._decode(fetcher, state)
            elif state.error is not None:
                error, state.error = state.error, None
                self._dequeue()
                fetcher.changed()
                raise error
            else:
                self._dequeue()
        fetcher.arrived.clear()
        return None

    def end_turn(self, state: AssignedPartition) -> None:
        """Give the next partition its turn after a batch of this one was handed out."""
        if self._turns and self._turns[0] is state:
            self._turns.rotate(-1)

    def postpone(self, error: ClientError) -> None:
        """Keep a partition's error for the next read, because this one already has records to return."""
        partition = TopicPartition(getattr(error, "topic", ""), getattr(error, "partition", -1))
        state = self.states.get(partition)
        if state is not None and state.error is None:
            state.error = error
            self._enqueue(state)

    def _decode(self, fetcher: Fetcher, state: AssignedPartition) -> None:
        """Decode the partition's next batch, or drop its first slice if that is used up."""
        piece = state.slices[0]
        was_full = fetcher.is_full(state)
        try:
            batch = piece.read_batch(state.position)
        except CorruptBatchError:
            position = state.position
            fetcher.release(state.move_to(position))
            fetcher.changed()
            raise
        if batch is not None:
            state.records, state.index, state.batch_end = batch.records, 0, batch.next_offset
            if not batch.records:  # a control batch, or an aborted one
                state.take(0)
        if batch is None or piece.remaining_bytes == 0:
            state.slices.popleft()
            fetcher.release([piece])
        fetcher.consumed(state, was_full=was_full)

    def _enqueue(self, state: AssignedPartition) -> None:
        if not state.queued:
            state.queued = True
            self._turns.append(state)

    def _dequeue(self) -> None:
        self._turns.popleft().queued = False

    def _fetch_on(self) -> None:
        if self._reading:
            self.fetcher.changed()
