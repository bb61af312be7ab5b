"""Membership in a consumer group: a task beside the consumer's reader that joins, syncs and sends heartbeats.

    eager         join -> assigned (heartbeats) -> generation ends -> the reader gives all partitions up -> join ...
    cooperative   join -> assigned (heartbeats) -> generation ends -> join, claiming the reader's partitions; it gives
                  up those that are not assigned again when it takes the assignment over -> join ...

The task never touches partitions. It leaves work for the reader in `offered` (have exactly these partitions),
`revoking` (give up your partitions, then call `given_up`) and `trouble` or `failure` (raise it), and calls `attention`.
So partitions change hands, and offsets are committed, only inside a read, between records: a crash repeats records and
loses none. While the task waits for the reader it goes on with heartbeats. If the reader does not read for
max_poll_interval_ms, the member leaves its group, and the partitions are lost.

A cooperative reader reads on while the others join. It claims the partitions that it had when the join was sent. An
offer that it has not taken over by then is withdrawn. A claim that is not confirmed is followed by another join, even
if the reader has given the partition up meanwhile: the leader withheld it from the other members.
Source: Kafka's AbstractCoordinator, ConsumerCoordinator.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from enum import Enum

from barnabas.clients.config import ConsumerConfig
from barnabas.clients.errors import ClientError
from barnabas.clients.membership.coordinator_retries import CoordinatorRetries
from barnabas.clients.membership.group_leader import GroupLeader
from barnabas.clients.membership.group_requests import ABOUT_THE_MEMBER, GroupRequests
from barnabas.clients.membership.subscriber import subscriptions
from barnabas.clients.network.cluster import Cluster
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.groups.consumer_protocol import decode_assigned
from barnabas.protocol.messages.groups.join_group import NO_GENERATION, NO_MEMBER_ID, JoinGroupResponse
from barnabas.protocol.messages.groups.sync_group import SyncGroupResponse
from barnabas.protocol.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


class Revoking(Enum):
    """How the reader has to give its partitions up."""

    IN_ORDER = "in order"  # they are still this member's: commit first
    LOST = "lost"  # they may belong to another member already


class ConsumerMembership:
    """Owned by one consumer while it is subscribed. `begin` starts the task, `leave` ends it.

    `last_read` returns the loop's time at which the reader was last seen reading, `owned` its partitions.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        group: str,
        topics: Collection[str],
        *,
        attention: Callable[[], None],
        last_read: Callable[[], float],
        owned: Callable[[], Collection[TopicPartition]],
    ) -> None:
        self.group = group
        self.member_id = NO_MEMBER_ID
        self.generation = NO_GENERATION
        self.is_joining = False
        """The coordinator may already have the next generation, which is not known here yet."""
        self.offered: tuple[TopicPartition, ...] | None = None
        self.revoking: Revoking | None = None
        self.trouble: ClientError | None = None
        """The coordinator has been unreachable for api_timeout_ms; retries go on."""
        self.failure: ClientError | None = None
        """The error that ended the membership for good."""
        self._cluster = cluster
        self._config = config
        self._topics = frozenset(topics)
        self._attention = attention
        self._last_read = last_read
        self._owned = owned
        self._claimed: frozenset[TopicPartition] = frozenset()
        self._requests = GroupRequests(cluster, config, group)
        self._leader = GroupLeader(cluster, config, group)
        self._rejoin = asyncio.Event()
        self._given_up = asyncio.Event()
        self._retries = CoordinatorRetries(config, group, self._report_trouble)
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Start the task, which joins the group."""
        self._task = asyncio.create_task(self._run(), name=f"barnabas-group-{self.group}")

    def take(self) -> None:
        """Confirm that the reader has exactly the offered partitions."""
        if self.offered is not None and self._claimed.difference(self.offered):
            self._rejoin.set()  # the next generation assigns the partitions given up to others
        self.offered = None

    def given_up(self) -> None:
        """Confirm that the reader has given all its partitions up."""
        self.revoking = None
        self._given_up.set()

    def change_topics(self, topics: Collection[str]) -> None:
        """Start a new generation with a subscription to these topics."""
        self._topics = frozenset(topics)
        self._rejoin.set()

    async def leave(self, reason: str) -> None:
        """End the task and leave the group. Raises no ClientError.

        A static member does not leave: it keeps its partitions over a restart within its session.
        """
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._requests.close()
        if self._config.group_instance_id is None:
            await self._leave_group(reason)

    async def _run(self) -> None:
        try:
            while True:
                self.is_joining = True
                self.offered = await self._enter()
                self.is_joining = False
                self._attention()
                over = await self._until_over()
                if over is Revoking.LOST or not self._config.keeps_partitions:
                    await self._until_given_up(over)
                self.offered = None
        except ClientError as error:
            self.failure = error
        except Exception as error:
            logger.exception("the membership ended by an internal error, group=%s", self.group)
            self.failure = ClientError(f"group {self.group!r}: the membership ended by an internal error: {error!r}")
        self._attention()

    # joining

    async def _enter(self) -> tuple[TopicPartition, ...]:
        """Join until this member has an assignment, and return it. Raises ClientError for a final error."""
        while True:
            if self.generation == NO_GENERATION and self._owned():
                await self._until_given_up(Revoking.LOST)
            self._rejoin.clear()
            self._claimed = frozenset(self._owned())
            joined = await self._join()
            if joined is None:
                continue
            self.member_id, self.generation = joined.member_id, joined.generation
            synced = await self._sync(joined)
            if synced is None:
                continue
            try:
                partitions = decode_assigned(synced.assignment)
            except DecodeError as error:
                raise ClientError(
                    f"group {self.group!r}: its leader sent an assignment that cannot be decoded: {error}"
                ) from error
            logger.info(
                "joined the group, group=%s generation=%d member_id=%s leads=%s partitions=%d",
                self.group,
                self.generation,
                self.member_id,
                joined.leader == self.member_id,
                len(partitions),
            )
            return partitions

    async def _join(self) -> JoinGroupResponse | None:
        """Join once. Returns None if another attempt is needed."""
        try:
            offers = subscriptions(self._config.assignors, self._topics, self._claimed, self.generation)
            joined = await self._requests.join(self.member_id, offers)
        except ClientError as error:
            await self._retries.pause(error)
            return None
        self._retries.reached()
        if joined.error is ErrorCode.NONE:
            return joined
        if joined.error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = joined.member_id
        elif joined.error is ErrorCode.UNKNOWN_MEMBER_ID:
            self._reset(joined.error)
        else:
            await self._retries.pause_unless_final(joined.error)
        return None

    async def _sync(self, joined: JoinGroupResponse) -> SyncGroupResponse | None:
        try:
            assignments = await self._leader.assign(joined)
            synced = await self._requests.sync(self.member_id, self.generation, joined.protocol, assignments)
        except ClientError as error:
            await self._retries.pause(error)
            return None
        self._retries.reached()
        if synced.error is ErrorCode.NONE:
            return synced
        if synced.error in ABOUT_THE_MEMBER:
            if synced.error is not ErrorCode.REBALANCE_IN_PROGRESS:
                self._reset(synced.error)
        else:
            await self._retries.pause_unless_final(synced.error)
        return None

    # living

    async def _until_over(self) -> Revoking:
        """Send heartbeats until this generation is over. Returns how the reader has to give up its partitions."""
        while True:
            await self._wait(self._rejoin)
            if self._rejoin.is_set() or self._leader.partitions_changed():
                return Revoking.IN_ORDER
            over = await self._beat()
            if over is not None:
                return over

    async def _until_given_up(self, revoking: Revoking) -> None:
        """Wait for the reader to give its partitions up, with heartbeats unless they are lost already."""
        offered, self.offered = self.offered, None
        if offered is not None and not self._owned():  # it has not taken any over
            return
        self._given_up.clear()
        self.revoking = revoking
        self._attention()
        while not self._given_up.is_set():
            if self.revoking is Revoking.LOST:
                await self._given_up.wait()
            else:
                await self._wait(self._given_up)
                if not self._given_up.is_set() and await self._beat() is Revoking.LOST:
                    self.revoking = Revoking.LOST

    async def _beat(self) -> Revoking | None:
        """Send one heartbeat. Returns how the generation ended, None if it goes on. Leaves if the reader is stuck."""
        if asyncio.get_running_loop().time() - self._last_read() > self._config.max_poll_interval_ms / 1000:
            logger.warning(
                "leaving the group, its partitions are reassigned: no read for max_poll_interval_ms=%d, group=%s",
                self._config.max_poll_interval_ms,
                self.group,
            )
            if self._config.group_instance_id is None:
                await self._leave_group("the consumer did not poll for max_poll_interval_ms")
                self.member_id = NO_MEMBER_ID
            self.generation = NO_GENERATION
            return Revoking.LOST
        try:
            beat = await self._requests.heartbeat(self.member_id, self.generation)
        except ClientError as error:
            await self._retries.pause(error)
            return None
        self._retries.reached()
        if beat.error is ErrorCode.NONE:
            return None
        if beat.error is ErrorCode.REBALANCE_IN_PROGRESS:
            return Revoking.IN_ORDER
        if beat.error in ABOUT_THE_MEMBER:
            logger.warning(
                "no longer a member of the group, joining again, group=%s error=%s", self.group, beat.error.name
            )
            self._reset(beat.error)
            return Revoking.LOST
        await self._retries.pause_unless_final(beat.error)
        return None

    async def _wait(self, event: asyncio.Event) -> None:
        """Wait for the event, at most one heartbeat interval."""
        try:
            async with asyncio.timeout(self._config.heartbeat_interval_ms / 1000):
                await event.wait()
        except TimeoutError:
            pass

    def _reset(self, error: ErrorCode) -> None:
        self.generation = NO_GENERATION
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = NO_MEMBER_ID

    async def _leave_group(self, reason: str) -> None:
        if self.member_id == NO_MEMBER_ID:
            return
        try:
            await self._requests.leave(self.member_id, reason)
        except ClientError as error:
            logger.info("leave request failed, the session will expire, group=%s: %s", self.group, error)

    def _report_trouble(self, error: ClientError) -> None:
        self.trouble = error
        self._attention()
