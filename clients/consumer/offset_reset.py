"""Offset reset: positions for new partitions, and for those whose offset is no longer in the log (offset_reset)."""

from __future__ import annotations

import asyncio
from typing import Protocol

from barnabas.clients.config import ConsumerConfig
from barnabas.clients.consumer.assigned_partition import NO_POSITION, AssignedPartition
from barnabas.clients.errors import ClientError
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.offsets import list_offsets
from barnabas.protocol.messages.data.fetch import READ_COMMITTED, READ_UNCOMMITTED
from barnabas.protocol.messages.data.list_offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from barnabas.protocol.topic_partition import TopicPartition


class Partitions(Protocol):
    """The part of the fetcher that the resetter uses."""

    @property
    def states(self) -> dict[TopicPartition, AssignedPartition]:
        """The assigned partitions."""
        ...

    def changed(self) -> None:
        """Check all partitions for work."""
        ...

    def interrupt(self, topic_partition: TopicPartition) -> None:
        """Cut off a waiting fetch that leaves the partition out."""
        ...

    def fail(self, state: AssignedPartition, error: ClientError) -> None:
        """Let the next read raise the error."""
        ...

    def ended(self, task: asyncio.Task[None]) -> None:
        """Handle the end of a task."""
        ...


def reset_timestamp(config: ConsumerConfig) -> int | None:
    """The list_offsets timestamp of offset_reset; None for "error"."""
    return {"earliest": EARLIEST_TIMESTAMP, "latest": LATEST_TIMESTAMP}.get(config.offset_reset)


def isolation_level(config: ConsumerConfig) -> int:
    """The wire value of `isolation`."""
    return READ_COMMITTED if config.isolation == "read_committed" else READ_UNCOMMITTED


def without_position(topic_partition: TopicPartition) -> ClientError:
    """The error of a partition without a position when offset_reset is "error"."""
    return ClientError(f"{topic_partition}: has no position; seek first, or set offset_reset to earliest or latest")


class OffsetResetter:
    """Runs one task at a time for all partitions without a position. The fetcher cancels `task` when it closes."""

    def __init__(self, partitions: Partitions, cluster: Cluster, config: ConsumerConfig) -> None:
        self.task: asyncio.Task[None] | None = None
        self._partitions = partitions
        self._cluster = cluster
        self._config = config

    def reset_soon(self) -> None:
        """Start resetting partitions without a position, unless that is under way."""
        if self.task is None or self.task.done():
            self.task = asyncio.create_task(self._reset(), name="barnabas-reset-offsets")
            self.task.add_done_callback(self._partitions.ended)

    async def _reset(self) -> None:
        timestamp = reset_timestamp(self._config)
        while lost := [s for s in self._partitions.states.values() if s.position == NO_POSITION and s.error is None]:
            if timestamp is None:
                for state in lost:
                    self._partitions.fail(state, without_position(state.topic_partition))
                return
            await self._ask({state: state.epoch for state in lost}, timestamp)
            self._partitions.changed()

    async def _ask(self, requested: dict[AssignedPartition, int], timestamp: int) -> None:
        wanted = {state.topic_partition: timestamp for state in requested}
        failure: ClientError | None = None
        try:
            offsets = await list_offsets(self._cluster, self._config, wanted, isolation_level(self._config))
        except ClientError as error:
            failure = error
        for state, epoch in requested.items():
            if state.epoch != epoch:
                continue  # sought meanwhile
            if failure is not None:
                self._partitions.fail(state, failure)
            else:
                state.move_to(offsets[state.topic_partition].offset)
                self._partitions.interrupt(state.topic_partition)
