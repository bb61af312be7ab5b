"""The consumer's membership in its group: subscribing, and what a rebalance asks of its reads.

A GroupMember beside the reader says when partitions come and go; `_attend`, at the beginning of a read or in the
middle of its waiting, does it. So no record of a partition is handed out after the partition was given up, and whatever
was handed out before a read has been worked on when that read commits.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from barnabas.clients.config import ConsumerConfig
from barnabas.clients.consumer.auto_commit import AutoCommit
from barnabas.clients.consumer.positions import ConsumerPositions
from barnabas.clients.consumer.rebalance_listener import RebalanceListener
from barnabas.clients.consumer.topic_pattern import TopicPattern, compiled_pattern
from barnabas.clients.errors import ClientError, ClosedError, RefusedError, UnknownTopicError
from barnabas.clients.membership.group_member import GroupMember, Revoking
from barnabas.clients.network.cluster import Cluster
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

NOTHING: Final[Mapping[TopicPartition, int]] = {}


class ConsumerSubscription(ConsumerPositions):
    """Part of Consumer."""

    _closing: bool

    def __init__(self, config: ConsumerConfig, cluster: Cluster) -> None:
        super().__init__(config, cluster)
        self._wants_attention = False  # a read has to do more than hand out records
        self._in_read = False
        self._last_read = 0.0
        self._last_seen: tuple[int, int] | None = None
        self._topics: tuple[str, ...] = ()
        self._pattern: TopicPattern | None = None
        self._listener = RebalanceListener()
        self._member: GroupMember | None = None
        self._auto_commit = AutoCommit(config.auto_commit_interval_ms, self._need_attention)

    async def subscribe(
        self,
        topics: Iterable[str] | None = None,
        listener: RebalanceListener | None = None,
        *,
        pattern: str | re.Pattern[str] | None = None,
    ) -> None:
        """Share the partitions of these topics with the group's other members; the next reads do what that needs.

        In place of topics a `pattern` may be given, a regular expression that whole names have to match: then topics
        that are made later are read, too, within metadata_max_age_ms, and those that are deleted are given up.

        The group assigns the partitions, each goes on where the group has committed, else where offset_reset says. Says
        which topics from now on: those of an earlier call are given up. Raises UnknownTopicError, with nothing changed,
        when one does not exist, ClientError without a group or where partitions were assigned by hand.
        """
        fetcher = self._opened()
        group = self._group()
        if (topics is None) == (pattern is None):
            raise ValueError("subscribe to topics or to a pattern, one of the two")
        if self._member is None and fetcher.states:
            raise ClientError("the consumer has partitions that were assigned by hand: assign([]) first")
        new_pattern = None
        if pattern is not None:
            new_pattern = TopicPattern(self._cluster, self.config, compiled_pattern(pattern), self._need_attention)
            names = await new_pattern.load()
        else:
            names = tuple(dict.fromkeys([topics] if isinstance(topics, str) else topics or ()))
            if not names:
                raise ValueError("subscribe to at least one topic, or unsubscribe")
            for name in names:
                await self._cluster.require_topic(name, self.config.api_timeout_ms)
        await self._end_pattern()
        self._pattern = new_pattern
        if new_pattern is not None:
            new_pattern.begin()
        self._topics = names
        self._listener = listener or RebalanceListener()
        if self._member is not None:
            self._member.change_topics(names)
            return
        self._last_read = asyncio.get_running_loop().time()
        self._member = GroupMember(
            self._cluster,
            self.config,
            group,
            names,
            attention=self._need_attention,
            last_read=self._seen_reading,
            owned=lambda: tuple(fetcher.states),
        )
        self._member.begin()

    async def unsubscribe(self) -> None:
        """Leave the group, after a commit where auto_commit is on. Without a subscription: nothing."""
        self._opened()
        await self._leave(commit=True, reason="the consumer unsubscribed")

    @property
    def subscription(self) -> tuple[str, ...]:
        """The topics of `subscribe`; of a pattern those that match."""
        return self._topics

    # what a read does for the group

    async def _attend(self) -> None:
        """Give partitions up, take them over, commit; until nothing of it is to be done. Raises ClientError."""
        while True:
            if self._closing:
                raise ClosedError("the consumer is closed")
            self._wants_attention = False
            member = self._member
            if member is not None and member.failure is not None:
                self._wants_attention = True  # every read says so
                await self._give_up(Revoking.LOST)
                raise member.failure
            if member is not None and member.trouble is not None:
                trouble, member.trouble = member.trouble, None
                self._wants_attention = True
                raise trouble
            if member is not None and member.revoking is not None:
                try:
                    await self._give_up(member.revoking)
                finally:
                    member.given_up()
            elif member is not None and self._pattern is not None and self._pattern.changed:
                self._pattern.changed = False
                await self._change_matching(member, self._pattern.topics)
            elif member is not None and member.offered is not None:
                await self._take_over(member, member.offered)
            elif self._auto_commit.due:
                await self._commit_by_itself()
            elif not self._wants_attention:
                return

    async def _change_matching(self, member: GroupMember, names: tuple[str, ...]) -> None:
        """Subscribe to these of the pattern. Partitions of deleted topics are given up now: nobody gets them."""
        gone = frozenset(self._topics).difference(names)
        self._topics = names
        lost = [partition for partition in self._opened().states if partition.topic in gone]
        try:
            await self._give_up(Revoking.IN_ORDER, lost, commit=False)
        finally:
            for name in gone:
                self._cluster.forget_topic(name)
            member.change_topics(names)

    def _forgives(self, error: ClientError) -> bool:
        """Whether a partition's error needs no saying: a topic of a pattern may be deleted."""
        if self._pattern is None or not isinstance(error, UnknownTopicError):
            return False
        self._pattern.look_soon()
        return True

    async def _end_pattern(self) -> None:
        pattern, self._pattern = self._pattern, None
        if pattern is not None:
            await pattern.end()

    async def _take_over(self, member: GroupMember, offered: tuple[TopicPartition, ...]) -> None:
        """Have exactly what is offered: what was kept goes on where it is, what is not in it is given up first."""
        self._wants_attention = True  # until it is done: what fails here is tried again by the next read
        states = self._opened().states
        added = tuple(partition for partition in offered if partition not in states)
        for topic in {partition.topic for partition in added}:
            try:
                await self._cluster.require_topic(topic, self.config.api_timeout_ms)
            except RefusedError as error:
                logger.warning("a topic of the assignment is not there, topic=%s: %s", topic, error)
        committed = await self._committed(added) if added else NOTHING
        if member.offered is not offered:  # withdrawn meanwhile
            return
        wanted = frozenset(offered)
        await self._give_up(Revoking.IN_ORDER, [partition for partition in states if partition not in wanted])
        if member.offered is not offered:
            return
        self._adopt(offered, committed)
        member.take()
        self._begin_to_commit()
        await self._listener.on_partitions_assigned(added)

    async def _give_up(
        self, revoking: Revoking, wanted: Collection[TopicPartition] | None = None, *, commit: bool = True
    ) -> None:
        """These partitions, or all; whatever is raised in here, they are given up. Commits where auto_commit is on."""
        partitions = tuple(self._opened().states if wanted is None else wanted)
        if not partitions:
            return
        try:
            if revoking is Revoking.LOST:
                await self._listener.on_partitions_lost(partitions)
            else:
                if commit and self.config.auto_commit:
                    await self._commit_by_itself(rebalance_ms=self.config.heartbeat_interval_ms)  # the last chance
                await self._listener.on_partitions_revoked(partitions)
        finally:
            kept = [partition for partition in self._opened().states if partition not in partitions]
            if not kept:
                self._auto_commit.stop()
            self._adopt(kept, NOTHING)

    async def _commit_by_itself(self, *, rebalance_ms: int = 0) -> None:
        """One attempt: the next one comes soon enough, and a record that is read twice is what was promised."""
        self._begin_to_commit()
        try:
            await self._commit(self._positions(), once=True, rebalance_ms=rebalance_ms)
        except ClientError as error:
            if isinstance(error, RefusedError) and error.code is ErrorCode.REBALANCE_IN_PROGRESS and not rebalance_ms:
                logger.debug("offsets are committed after the rebalance, group=%s", self.config.group)
            else:
                logger.warning("offsets not committed, group=%s: %s", self.config.group, error)

    def _begin_to_commit(self) -> None:
        """Count auto_commit_interval_ms from now on."""
        if self.config.group is not None and self.config.auto_commit and self._opened().states:
            self._auto_commit.begin()

    async def _leave(self, *, commit: bool, reason: str) -> None:
        """Out of the group, with nothing assigned; where partitions are assigned by hand, only the last commit."""
        member = self._member
        try:
            if member is not None:
                lost = member.failure is not None or member.revoking is Revoking.LOST
                await self._give_up(Revoking.LOST if lost else Revoking.IN_ORDER, commit=commit)
            elif commit and self.config.group is not None and self.config.auto_commit:
                await self._commit_by_itself()
        finally:
            self._auto_commit.stop()
            await self._end_pattern()
            if member is not None:
                self._member = None
                self._topics = ()
                await member.leave(reason)

    def _need_attention(self) -> None:
        """The next read, or the one that waits, has to call `_attend`; an iteration leaves its batch for it."""
        self._wants_attention = True
        self._current = None
        if self._fetcher is not None:
            self._fetcher.arrived.set()

    def _seen_reading(self) -> float:
        """The loop's time at which the reader was last known to read: in a call, or one record further than before."""
        current = self._current
        seen = None if current is None else (current.position, current.index)
        if self._in_read or seen not in (None, self._last_seen):
            self._last_read = asyncio.get_running_loop().time()
        self._last_seen = seen
        return self._last_read

    def _read_begins(self) -> None:
        self._in_read = True

    def _read_ends(self) -> None:
        self._in_read = False
        self._last_read = asyncio.get_running_loop().time()

    def _adopt(self, wanted: Iterable[TopicPartition], committed: Mapping[TopicPartition, int]) -> None:
        raise NotImplementedError
