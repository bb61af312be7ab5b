"""Seeking: changes of the positions from which the assigned partitions are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.clients.config import ConsumerConfig
from barnabas.clients.consumer.assigned_partition import NO_POSITION
from barnabas.clients.consumer.log_offsets import LogOffsets
from barnabas.clients.consumer.offset_reset import reset_timestamp, without_position
from barnabas.clients.consumer.record_queue import RecordQueue
from barnabas.protocol.messages.data.list_offsets import LATEST_TIMESTAMP
from barnabas.protocol.topic_partition import TopicPartition


class ConsumerPositions:
    """All methods raise ValueError for a partition that is not assigned."""

    def __init__(self, config: ConsumerConfig, queue: RecordQueue, log_offsets: LogOffsets) -> None:
        self._config = config
        self._queue = queue
        self._log_offsets = log_offsets

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """See Consumer.seek."""
        if offset < 0:
            raise ValueError(f"{partition}: offset {offset} is negative; use seek_to_beginning or seek_to_end")
        (state,) = self._queue.named_states([partition])
        self._queue.move(state, offset)

    async def seek_all(self, partitions: Iterable[TopicPartition], timestamp: int) -> None:
        """Move these partitions (all, if none is named) to EARLIEST_TIMESTAMP or LATEST_TIMESTAMP."""
        wanted = {state.topic_partition: timestamp for state in self._queue.named_states(partitions)}
        self._move_all(await self._log_offsets.query(wanted))

    def restart(self, partitions: Iterable[TopicPartition], offsets: Mapping[TopicPartition, int]) -> None:
        """Move these partitions (all, if none is named) to `offsets`; one without an offset begins by offset_reset."""
        for state in self._queue.named_states(partitions):
            self._queue.move(state, offsets.get(state.topic_partition, NO_POSITION))

    async def seek_to_timestamp(self, timestamps_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """See Consumer.seek_to_timestamp."""
        self._queue.named_states(timestamps_ms)  # all must be assigned
        found = await self._log_offsets.for_times(timestamps_ms)
        late = [partition for partition, listed in found.items() if listed is None]
        ends = await self._log_offsets.at(late, LATEST_TIMESTAMP) if late else {}
        offsets = {
            partition: ends[partition] if listed is None else listed.offset for partition, listed in found.items()
        }
        self._move_all(offsets)
        return offsets

    async def position(self, partition: TopicPartition) -> int:
        """See Consumer.position."""
        (state,) = self._queue.named_states([partition])
        if state.position == NO_POSITION:
            timestamp = reset_timestamp(self._config)
            if timestamp is None:
                raise without_position(partition)
            epoch = state.epoch
            offsets = await self._log_offsets.query({partition: timestamp})
            if state.epoch == epoch and state.position == NO_POSITION:
                self._queue.move(state, offsets[partition])
        return state.position

    def _move_all(self, offsets: Mapping[TopicPartition, int]) -> None:
        states = self._queue.states
        for partition, offset in offsets.items():
            state = states.get(partition)
            if state is not None:  # it may have been unassigned meanwhile
                self._queue.move(state, offset)
