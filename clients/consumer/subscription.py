"""The choice of partitions: assigned by hand, or by the group of a subscription, with the work of its rebalances.

A ConsumerMembership beside the reader announces partitions that come and go; `attend`, called at the beginning of a
read or in the middle of its waiting, carries it out. So no record of a partition is handed out after the partition was
given up, and all records handed out before a read have been processed when that read commits.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from barnabas.clients.config import ConsumerConfig
from barnabas.clients.consumer.auto_commit import AutoCommit
from barnabas.clients.consumer.commits import OffsetCommits
from barnabas.clients.consumer.read_activity import ReadActivity
from barnabas.clients.consumer.rebalance_listener import RebalanceListener
from barnabas.clients.consumer.record_queue import RecordQueue
from barnabas.clients.consumer.topic_pattern import TopicPattern
from barnabas.clients.errors import ClientError, ClosedError, RefusedError, UnknownTopicError
from barnabas.clients.membership.consumer_membership import ConsumerMembership, Revoking
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.routing import ensure_partition
from barnabas.protocol.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

NO_OFFSETS: Final[Mapping[TopicPartition, int]] = {}


class ConsumerSubscription:
    """Owned by one consumer. A read calls `attend` while `wants_attention`, before it hands out records."""

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        queue: RecordQueue,
        activity: ReadActivity,
    ) -> None:
        self.wants_attention = False
        self.topics: tuple[str, ...] = ()
        """The subscribed topics; of a pattern those that match."""
        self.membership: ConsumerMembership | None = None
        self.commits = OffsetCommits(cluster, config, queue, lambda: self.membership)
        self.auto_commit = AutoCommit(config, queue, self.commits, self._need_attention)
        self.revoked_at = float("-inf")
        """The event loop's time at which partitions were last given up."""
        self._cluster = cluster
        self._config = config
        self._queue = queue
        self._activity = activity
        self._pattern: TopicPattern | None = None
        self._listener = RebalanceListener()

    async def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """See Consumer.assign."""
        states = self._queue.states
        if self.membership is not None:
            raise ClientError("the consumer is subscribed, and its group assigns: unsubscribe first")
        wanted = dict.fromkeys(TopicPartition(*partition) for partition in partitions)
        for partition in wanted:
            await ensure_partition(self._cluster, self._config, partition)
        new = [partition for partition in wanted if partition not in states]
        committed = await self.commits.committed(new) if new and self._config.group is not None else NO_OFFSETS
        if states and self.auto_commit.enabled:
            await self.auto_commit.commit()
        self._queue.assign(wanted, committed)
        self.auto_commit.begin()

    async def subscribe(
        self,
        topics: Iterable[str] | None,
        listener: RebalanceListener | None,
        pattern: str | re.Pattern[str] | None,
    ) -> None:
        """See Consumer.subscribe."""
        states = self._queue.states
        group = self.commits.group()
        if (topics is None) == (pattern is None):
            raise ValueError("subscribe to topics or to a pattern, one of the two")
        if self.membership is None and states:
            raise ClientError("the consumer has partitions that were assigned by hand: assign([]) first")
        new_pattern = None
        if pattern is not None:
            new_pattern = TopicPattern(self._cluster, self._config, pattern, self._need_attention)
            names = await new_pattern.load()
        else:
            names = tuple(dict.fromkeys([topics] if isinstance(topics, str) else topics or ()))
            if not names:
                raise ValueError("subscribe to at least one topic, or unsubscribe")
            for name in names:
                await self._cluster.require_topic(name, self._config.api_timeout_ms)
        await self._end_pattern()
        self._pattern = new_pattern
        if new_pattern is not None:
            new_pattern.begin()
        self.topics = names
        self._listener = listener or RebalanceListener()
        if self.membership is not None:
            self.membership.change_topics(names)
            return
        self._activity.reset()
        self.membership = ConsumerMembership(
            self._cluster,
            self._config,
            group,
            names,
            attention=self._need_attention,
            last_read=self._activity.last_read,
            owned=lambda: tuple(states),
        )
        self.membership.begin()

    def ignores(self, error: UnknownTopicError) -> bool:
        """Whether reads do not raise this error: a topic of a pattern may be deleted."""
        if self._pattern is None:
            return False
        self._pattern.look_soon()
        return True

    async def attend(self) -> None:
        """Carry out revocations, assignments and due commits until none is left. Raises ClientError."""
        while True:
            if self._queue.closing:
                raise ClosedError("the consumer is closed")
            self.wants_attention = False
            membership = self.membership
            if membership is not None and membership.failure is not None:
                self.wants_attention = True  # every read raises it
                await self._give_up(Revoking.LOST)
                raise membership.failure
            if membership is not None and membership.trouble is not None:
                trouble, membership.trouble = membership.trouble, None
                self.wants_attention = True
                raise trouble
            if membership is not None and membership.revoking is not None:
                try:
                    await self._give_up(membership.revoking)
                finally:
                    membership.given_up()
            elif membership is not None and self._pattern is not None and self._pattern.changed:
                self._pattern.changed = False
                await self._change_matching(membership, self._pattern.topics)
            elif membership is not None and membership.offered is not None:
                await self._take_over(membership, membership.offered)
            elif self.auto_commit.due:
                await self.auto_commit.commit()
            elif not self.wants_attention:
                return

    async def leave(self, *, commit: bool, reason: str) -> None:
        """Commit if `commit` and automatic, leave the group and give its partitions up.

        Partitions that were assigned by hand stay assigned.
        """
        membership = self.membership
        try:
            if membership is not None:
                lost = membership.failure is not None or membership.revoking is Revoking.LOST
                await self._give_up(Revoking.LOST if lost else Revoking.IN_ORDER, commit=commit)
            elif commit and self.auto_commit.enabled:
                await self.auto_commit.commit()
        finally:
            self.auto_commit.stop()
            await self._end_pattern()
            if membership is not None:
                self.membership = None
                self.topics = ()
                await membership.leave(reason)

    async def _change_matching(self, membership: ConsumerMembership, names: tuple[str, ...]) -> None:
        """Subscribe to the pattern's current topics. Give up partitions of deleted topics now: no member gets them."""
        gone = frozenset(self.topics).difference(names)
        self.topics = names
        lost = [partition for partition in self._queue.states if partition.topic in gone]
        try:
            await self._give_up(Revoking.IN_ORDER, lost, commit=False)
        finally:
            for name in gone:
                self._cluster.forget_topic(name)
            membership.change_topics(names)

    async def _take_over(self, membership: ConsumerMembership, offered: tuple[TopicPartition, ...]) -> None:
        """Replace the assignment by `offered`. Kept partitions go on, partitions missing from it are given up first."""
        self.wants_attention = True  # until it is done: after a failure the next read tries again
        states = self._queue.states
        added = tuple(partition for partition in offered if partition not in states)
        for topic in {partition.topic for partition in added}:
            try:
                await self._cluster.require_topic(topic, self._config.api_timeout_ms)
            except RefusedError as error:
                logger.warning("a topic of the assignment does not exist, topic=%s: %s", topic, error)
        committed = await self.commits.committed(added) if added else NO_OFFSETS
        if membership.offered is not offered:  # withdrawn meanwhile
            return
        wanted = frozenset(offered)
        await self._give_up(Revoking.IN_ORDER, [partition for partition in states if partition not in wanted])
        if membership.offered is not offered:
            return
        self._queue.assign(offered, committed)
        membership.take()
        self.auto_commit.begin()
        await self._listener.on_partitions_assigned(added)

    async def _give_up(
        self, revoking: Revoking, wanted: Collection[TopicPartition] | None = None, *, commit: bool = True
    ) -> None:
        """Give these partitions up (None: all), also when a commit or the listener fails.

        Commits first if auto_commit is on and the partitions are not lost.
        """
        partitions = tuple(self._queue.states if wanted is None else wanted)
        if not partitions:
            return
        try:
            if revoking is Revoking.LOST:
                await self._listener.on_partitions_lost(partitions)
            else:
                if commit and self.auto_commit.enabled:
                    await self.auto_commit.commit(rebalance_ms=self._config.heartbeat_interval_ms)  # the last chance
                await self._listener.on_partitions_revoked(partitions)
        finally:
            self.revoked_at = asyncio.get_running_loop().time()
            kept = [partition for partition in self._queue.states if partition not in partitions]
            if not kept:
                self.auto_commit.stop()
            self._queue.assign(kept, NO_OFFSETS)

    async def _end_pattern(self) -> None:
        pattern, self._pattern = self._pattern, None
        if pattern is not None:
            await pattern.end()

    def _need_attention(self) -> None:
        """Make the next read, or the waiting one, call `attend`. The iteration leaves its batch for it."""
        self.wants_attention = True
        self._queue.interrupt_reader()
