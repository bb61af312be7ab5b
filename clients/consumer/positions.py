"""The consumer's calls about where it stands in its partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.clients.consumer.offset_reset import reset_timestamp, without_position
from barnabas.clients.consumer.offsets import ConsumerOffsets
from barnabas.clients.consumer.partition_state import NO_POSITION, PartitionState
from barnabas.clients.offsets import list_offsets
from barnabas.protocol.messages.data.list_offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from barnabas.protocol.topic_partition import TopicPartition


class ConsumerPositions(ConsumerOffsets):
    """Part of Consumer."""

    _current: PartitionState | None

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read this assigned partition from `offset` on. An offset that is not there is offset_reset's matter."""
        if offset < 0:
            raise ValueError(f"{partition}: offset {offset} is negative; use seek_to_beginning or seek_to_end")
        (state,) = self._states([partition])
        self._move(state, offset)

    async def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Read these (all assigned ones by default) from their first record on."""
        await self._seek_to_time({state.topic_partition: EARLIEST_TIMESTAMP for state in self._states(partitions)})

    async def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Read of these (all assigned ones by default) only what comes from now on."""
        await self._seek_to_time({state.topic_partition: LATEST_TIMESTAMP for state in self._states(partitions)})

    async def seek_to_timestamp(self, timestamps_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Read each from its first record at or after a time (ms since 1970) on; from the end where none is that late.

        Returns the offsets.
        """
        self._states(timestamps_ms)  # all must be assigned
        found = await self.offsets_for_times(timestamps_ms)
        late = [partition for partition, listed in found.items() if listed is None]
        ends = await self.end_offsets(late) if late else {}
        offsets = {
            partition: ends[partition] if listed is None else listed.offset for partition, listed in found.items()
        }
        self._move_all(offsets)
        return offsets

    async def position(self, partition: TopicPartition) -> int:
        """The offset of the next record that this partition hands out."""
        (state,) = self._states([partition])
        if state.position == NO_POSITION:
            timestamp = reset_timestamp(self.config)
            if timestamp is None:
                raise without_position(partition)
            epoch = state.epoch
            listed = await list_offsets(self._cluster, self.config, {partition: timestamp}, self._isolation)
            if state.epoch == epoch and state.position == NO_POSITION:
                self._move(state, listed[partition].offset)
        return state.position

    # inside

    def _move(self, state: PartitionState, offset: int) -> None:
        fetcher = self._opened()
        fetcher.release(state.move_to(offset))
        if self._current is state:
            self._current = None
        fetcher.interrupt(state.topic_partition)
        self._wake()

    def _move_all(self, offsets: Mapping[TopicPartition, int]) -> None:
        fetcher = self._opened()
        for partition, offset in offsets.items():
            state = fetcher.states.get(partition)
            if state is not None:  # it may have been unassigned meanwhile
                self._move(state, offset)

    async def _seek_to_time(self, wanted: Mapping[TopicPartition, int]) -> None:
        listed = await list_offsets(self._cluster, self.config, wanted, self._isolation)
        self._move_all({partition: entry.offset for partition, entry in listed.items()})

    def _states(self, partitions: Iterable[TopicPartition]) -> list[PartitionState]:
        """The states of these assigned partitions; of all of them when none is named."""
        states = self._opened().states
        named = [TopicPartition(*partition) for partition in partitions] or list(states)
        missing = [partition for partition in named if partition not in states]
        if missing:
            raise ValueError(f"{missing[0]} is not assigned to this consumer")
        return [states[partition] for partition in named]

    def _wake(self) -> None:
        raise NotImplementedError
