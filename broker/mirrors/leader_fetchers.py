"""LeaderFetchers: one fetcher and one task for each broker of the source that leads copied partitions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.broker.mirrors.leader_fetcher import LeaderFetcher
    from barnabas.broker.mirrors.mirrored_partition import MirroredPartition
    from barnabas.protocol.topic_partition import TopicPartition


class LeaderFetchers:
    """Event loop only."""

    def __init__(self, mirror: str, make: Callable[[int], LeaderFetcher]) -> None:
        """`make` returns a fetcher for a node id; the tasks are named after the mirror."""
        self._mirror = mirror
        self._make = make
        self._fetchers: dict[int, LeaderFetcher] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        """Cancelled tasks, which may still wait for an append."""

    @property
    def errors(self) -> list[str]:
        """Reasons why leaders cannot be reached."""
        return [each.error for each in list(self._fetchers.values()) if each.error is not None]

    def copies(self, key: TopicPartition, leader: int) -> bool:
        """Return whether a partition is copied from this leader."""
        fetcher = self._fetchers.get(leader)
        return fetcher is not None and key in fetcher.keys

    def add(self, partition: MirroredPartition, leader: int) -> None:
        """Copy a partition, which is copied from nowhere, from a leader."""
        fetcher = self._fetchers.get(leader)
        if fetcher is None:
            fetcher = self._fetchers[leader] = self._make(leader)
            name = f"mirror-{self._mirror}-{leader}"
            self._tasks[leader] = asyncio.get_running_loop().create_task(fetcher.run(), name=name)
        fetcher.add(partition)

    def remove(self, key: TopicPartition) -> None:
        """Stop copying a partition. An append that runs goes on until it is done."""
        for fetcher in self._fetchers.values():
            fetcher.remove(key)

    def end_idle(self) -> None:
        """Stop the fetchers without partitions."""
        for leader in [each for each, fetcher in self._fetchers.items() if not fetcher.keys]:
            del self._fetchers[leader]
            self._end(self._tasks.pop(leader))

    async def stop(self) -> None:
        """Stop all fetchers; return once nothing appends any more."""
        for task in self._tasks.values():
            self._end(task)
        self._tasks.clear()
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        task.cancel()
