"""Observer: a task that asks a cluster again and again, and keeps the latest snapshot with its history.

Pages are made from the snapshot, so their time does not grow with the number of brokers, and reloading a page costs the
cluster nothing. It starts with the first page.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final

from barnabas.clients.errors import ClientError
from barnabas.clients.network.cluster import Cluster
from barnabas.console.cluster.group_listing import list_groups
from barnabas.console.cluster.history import History
from barnabas.console.cluster.snapshot import GroupFacts, Snapshot, TopicFacts
from barnabas.console.cluster.topic_listing import list_all

TOTAL: Final = ""
"""Name of the cluster's own series."""

_SHARE_OF_TIME: Final = 10
"""An observation that takes long is repeated after so many times its duration."""

_GROUPS_EVERY: Final = 3
"""Committed offsets are asked for in every third observation."""

logger = logging.getLogger(__name__)


class Observer:
    """Owned by a ClusterAccess. `snapshot` starts it."""

    def __init__(self, kafka: Cluster, interval_s: float, *, is_barnabas: bool) -> None:
        self._kafka = kafka
        self._is_barnabas = is_barnabas
        self._interval_s = interval_s
        self._latest: Snapshot | None = None
        self._failure: ClientError | None = None
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Condition()
        self._rounds = 0
        self.byte_rates = History()
        """Bytes per second by topic, and of all under TOTAL."""
        self.record_rates = History()
        """Records per second by topic, and of all under TOTAL."""
        self.lags = History()
        """Lag in records by group."""

    @property
    def failure(self) -> str | None:
        """Why the last observation failed; None if it did not."""
        return None if self._failure is None else str(self._failure)

    async def snapshot(self) -> Snapshot:
        """Return the latest snapshot; wait for the first. Raises ClientError if there is none yet."""
        self._start()
        if self._latest is None:
            async with self._changed:
                await self._changed.wait_for(lambda: self._latest is not None or self._failure is not None)
        if self._latest is None:
            assert self._failure is not None
            raise self._failure
        return self._latest

    async def refresh(self) -> Snapshot:
        """Observe now, groups included: what this user has just changed is in it. Raises ClientError."""
        self._rounds = 0
        await self._observe()
        assert self._latest is not None
        return self._latest

    async def changes(self) -> AsyncIterator[Snapshot]:
        """Yield the latest snapshot, and every later one, also after a failed observation."""
        self._start()
        while True:
            if self._latest is not None:
                yield self._latest
            async with self._changed:
                await self._changed.wait()

    async def close(self) -> None:
        """End the task. Idempotent."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    def _start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="console-observer")

    async def _run(self) -> None:
        while True:
            started = time.monotonic()
            try:
                await self._observe()
            except ClientError as error:
                logger.warning("the cluster could not be observed: %s", error)
                await self._failed(error)
            except Exception:
                logger.exception("a bug: the cluster could not be observed")
                await self._failed(ClientError("an error inside the console; its log says more"))
            took = time.monotonic() - started
            await asyncio.sleep(max(self._interval_s, _SHARE_OF_TIME * took))

    async def _failed(self, error: ClientError) -> None:
        self._failure = error
        async with self._changed:
            self._changed.notify_all()

    async def _observe(self) -> None:
        listing = await list_all(self._kafka, is_barnabas=self._is_barnabas)
        now_ms = time.time_ns() // 1_000_000
        previous = self._latest
        problems = listing.problems
        topics = {each.name: _with_rates(each, previous, now_ms) for each in listing.topics}
        groups: Mapping[str, GroupFacts]
        if previous is None or self._rounds % _GROUPS_EVERY == 0:
            groups = await list_groups(self._kafka, topics, problems)
        else:
            groups = previous.groups
        self._rounds += 1
        latest = Snapshot(
            now_ms,
            listing.metadata.cluster_id or "",
            listing.metadata.controller_id,
            listing.metadata.brokers,
            topics,
            listing.directories,
            groups,
            tuple(dict.fromkeys(problems)),
        )
        self._remember(latest)
        self._latest, self._failure = latest, None
        async with self._changed:
            self._changed.notify_all()

    def _remember(self, latest: Snapshot) -> None:
        now_s = latest.taken_at_ms // 1000
        records = {each.name: each.records_per_s for each in latest.topics.values() if each.records_per_s is not None}
        sizes = {each.name: each.bytes_per_s for each in latest.topics.values() if each.bytes_per_s is not None}
        if latest.records_per_s is not None:
            records[TOTAL] = latest.records_per_s
        if latest.bytes_per_s is not None:
            sizes[TOTAL] = latest.bytes_per_s
        self.record_rates.add(now_s, records)
        self.byte_rates.add(now_s, sizes)
        self.lags.add(now_s, {name: float(each.lag) for name, each in latest.groups.items() if each.lag is not None})


def _with_rates(topic: TopicFacts, previous: Snapshot | None, now_ms: int) -> TopicFacts:
    """Add the rates since the previous observation. A log that was cut, or is new, counts from its start."""
    before = None if previous is None else previous.topics.get(topic.name)
    if previous is None or before is None or before.topic_id != topic.topic_id:
        return topic
    seconds = (now_ms - previous.taken_at_ms) / 1000
    if seconds <= 0:
        return replace(topic, records_per_s=before.records_per_s, bytes_per_s=before.bytes_per_s)
    old_ends = {each.partition: each.end_offset for each in before.partitions}
    old_sizes = {each.partition: each.size_bytes for each in before.partitions}
    records = size = 0
    for each in topic.partitions:
        old_end, old_size = old_ends.get(each.partition), old_sizes.get(each.partition)
        if each.end_offset is not None and old_end is not None:
            records += max(0, each.end_offset - old_end)
        if each.size_bytes is not None and old_size is not None:
            size += max(0, each.size_bytes - old_size)  # a deletion hides what came in meanwhile
    return replace(topic, records_per_s=records / seconds, bytes_per_s=size / seconds)
