"""One membership in a consumer group: the conversation with the coordinator, as a task beside the consumer's reader.

    eager         joining -> assigned (heartbeats) -> the generation ends -> the reader gives all up -> joining ...
    cooperative   joining -> assigned (heartbeats) -> the generation ends -> joining, what the reader has is claimed;
                  what it claimed and is not assigned any more, the reader gives up as it takes over -> joining ...

The task never touches partitions. It leaves what the reader has to do in `offered` (have exactly these partitions),
`revoking` (give up what you have, then call `given_up`) and `trouble` or `failure` (raise it), and calls `attention`.
So partitions change hands only inside a read, between records. While it waits for the reader it goes on with
heartbeats; a reader that does not come for max_poll_interval_ms makes it leave, and the partitions are lost.

A cooperative reader reads on while the others join. What it had when the join was sent is what it claims: an offer
that was not taken over by then is withdrawn, and a claim that is not confirmed is followed by another join, also where
the reader has given the partition up meanwhile: others wait for it.
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

    IN_ORDER = "in order"  # they are still ours: commit first
    LOST = "lost"  # they may be somebody else's already


class ConsumerMembership:
    """Owned by one consumer while it is subscribed. `begin` starts the task, `leave` ends it.

    `last_read` tells the loop's time at which the reader was last seen reading, `owned` what it has.
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
        """The next generation may be there for the coordinator, and not yet here."""
        self.offered: tuple[TopicPartition, ...] | None = None
        self.revoking: Revoking | None = None
        self.trouble: ClientError | None = None
        """The coordinator has been out of reach for api_timeout_ms; it is tried on."""
        self.failure: ClientError | None = None
        """The membership has ended for good."""
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
        """Join."""
        self._task = asyncio.create_task(self._run(), name=f"barnabas-group-{self.group}")

    def take(self) -> None:
        """The reader has exactly what was offered."""
        if self.offered is not None and self._claimed.difference(self.offered):
            self._rejoin.set()  # others get those that were given up
        self.offered = None

    def given_up(self) -> None:
        """The reader has given up all that it had."""
        self.revoking = None
        self._given_up.set()

    def change_topics(self, topics: Collection[str]) -> None:
        """Subscribe to these from the next generation on, which begins now."""
        self._topics = frozenset(topics)
        self._rejoin.set()

    async def leave(self, reason: str) -> None:
        """End. A static member stays in the group until its session ends, for its next start. Raises no ClientError."""
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
            logger.exception("the membership in group %s ended by an error of its own", self.group)
            self.failure = ClientError(f"group {self.group!r}: the membership ended by an internal error: {error!r}")
        self._attention()

    # joining

    async def _enter(self) -> tuple[TopicPartition, ...]:
        """Join until there is a generation with an assignment. Raises ClientError where no further try would help."""
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
                    f"group {self.group!r}: its leader sent an assignment that is none: {error}"
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
        """The generation, or None where it is to be tried again."""
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
        """Heartbeats until this generation is over, and how."""
        while True:
            await self._wait(self._rejoin)
            if self._rejoin.is_set() or self._leader.partitions_changed():
                return Revoking.IN_ORDER
            over = await self._beat()
            if over is not None:
                return over

    async def _until_given_up(self, revoking: Revoking) -> None:
        """Heartbeats, as long as there is something to keep, until the reader has given its partitions up."""
        offered, self.offered = self.offered, None
        if offered is not None and not self._owned():  # it has not even taken them over
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
        """One heartbeat; how the generation is over, if it is. Leaves the group where the reader is gone."""
        if asyncio.get_running_loop().time() - self._last_read() > self._config.max_poll_interval_ms / 1000:
            logger.warning(
                "leaving the group, others get the partitions: nothing was read for max_poll_interval_ms=%d, group=%s",
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
            logger.warning("the group goes on without this member, group=%s error=%s", self.group, beat.error.name)
            self._reset(beat.error)
            return Revoking.LOST
        await self._retries.pause_unless_final(beat.error)
        return None

    async def _wait(self, event: asyncio.Event) -> None:
        """Until the event, a heartbeat interval at most."""
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
            logger.info("the group was not told of the leave, it will notice, group=%s: %s", self.group, error)

    def _report_trouble(self, error: ClientError) -> None:
        self.trouble = error
        self._attention()
