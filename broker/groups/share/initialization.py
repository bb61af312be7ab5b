"""The share coordinator creates and deletes the states of a group's partitions; the group's records follow its answers.

Each step is two writes: the group's record says what is about to happen, then the share coordinator is asked, then the
record says what happened. After a kill in between, the next heartbeat (initialization) or the next request of the same
kind (deletion) asks again; the share coordinator may be asked any number of times.

Each write is on the disk before the next one, whatever the flush settings of the two topics, because each could lose
what the other keeps in a crash of the machine: a group whose record names a state that does not exist could never fetch
again, and a state of a later epoch than its group's could not be initialized. Source: Kafka's GroupCoordinatorService
(persisterInitialize, performShareGroupsDeletion, deleteShareGroupOffsets), which relies on replicas.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.broker.groups.share import states as share_states
from barnabas.broker.groups.share.change import ShareGroupChange
from barnabas.broker.groups.share.group import NOT_POSTPONED
from barnabas.broker.groups.share.records import states_record
from barnabas.broker.printable import printable
from barnabas.broker.share.coordinator import InitialShareState, TopicIdPartition
from barnabas.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.coordinator_log.log import Appended
    from barnabas.broker.groups.share.context import ShareContext
    from barnabas.broker.groups.share.log import ShareGroupLog
    from barnabas.broker.groups.share.states import StatePartitions
    from barnabas.broker.share.coordinator import ShareCoordinator
    from barnabas.protocol.groups.consumer_group_values import Partitions

logger = logging.getLogger(__name__)

Next = Callable[["StatePartitions"], "StatePartitions | None"]
"""Returns the next value of the group's record from the present one; None: nothing to write."""


class ShareStates:
    """Asks the share coordinator on behalf of share groups. In the event loop only."""

    def __init__(
        self,
        log: ShareGroupLog,
        context: ShareContext,
        coordinator: Callable[[], ShareCoordinator],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """`coordinator` returns the share coordinator, which is created at its first use."""
        self._log = log
        self._context = context
        self._coordinator = coordinator
        self._loop = loop
        self._tasks: set[asyncio.Task[None]] = set()
        self._losses = 0

    @property
    def coordinator(self) -> ShareCoordinator:
        """The share coordinator."""
        return self._coordinator()

    def lost(self) -> None:
        """Note that all states are gone: what an initialization under way has created does not exist any more."""
        self._losses += 1

    def begin(self, group_id: str, partitions: Partitions, epoch: int) -> None:
        """Initialize states in the background: a heartbeat does not wait for it."""
        self.spawn(self._initialize_in_background(group_id, partitions, epoch))

    async def initialize(
        self, group_id: str, offsets: Mapping[TopicIdPartition, int], epoch: int
    ) -> Mapping[TopicIdPartition, ErrorCode]:
        """Initialize states with start offsets; return what happened to each. The record follows if all succeeded.

        Raises BrokerError if the record could not be written.
        """
        initial = [InitialShareState(*partition, epoch, offset) for partition, offset in offsets.items()]
        losses = self._losses
        await self.durable(self._log.synced(group_id))
        results = await self.coordinator.initialize(group_id, initial)
        if self._losses != losses:
            return dict.fromkeys(results, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if not any(results.values()):
            await self.write(group_id, self._initialized(_by_topic(offsets)))
        return results

    async def delete(
        self, group_id: str, partitions: Sequence[TopicIdPartition]
    ) -> Mapping[TopicIdPartition, ErrorCode]:
        """Delete states whose deletion the group's record says already; return what happened to each.

        Raises BrokerError if the record could not be written.
        """
        await self.durable(self._log.synced(group_id))
        return await self.coordinator.delete(group_id, partitions)

    async def write(self, group_id: str, following: Next) -> None:
        """Append the next record of a group's states. Raises BrokerError."""
        group = self._log.get(group_id)
        if group is None:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no share group {printable(group_id)}")
        value = following(group.states)
        if value is None:
            return
        change = ShareGroupChange(group, self._context)
        change.records.append(states_record(group_id, value))
        await self.durable(self._log.write(change))

    async def durable(self, appended: Appended) -> None:
        """Wait until records are durable. Raises BrokerError."""
        late: asyncio.Future[BrokerError | None] = self._loop.create_future()
        appended.then(lambda error: None if late.cancelled() else late.set_result(error))
        error = await late
        if error is not None:
            raise error

    def stop(self) -> None:
        """End the background tasks: what they were about to record is asked for again."""
        for task in self._tasks:
            task.cancel()

    async def _initialize_in_background(self, group_id: str, partitions: Partitions, epoch: int) -> None:
        offsets = {(topic_id, number): -1 for topic_id, numbers in partitions.items() for number in sorted(numbers)}
        losses = self._losses
        try:
            results = await self.initialize(group_id, offsets, epoch)
            if self._losses != losses:
                return  # the group has forgotten them, and a heartbeat may have begun with them again
            failed = next(filter(None, results.values()), None)
            group = self._log.get(group_id)
            if group is None:
                return
            if failed is None:
                group.postponed = NOT_POSTPONED
                return
            group.postpone_initialization(self._context.settings_of(group_id).initialize_retry_interval_ms)
            logger.warning(
                "states of share group %s could not be initialized, trying again in %d ms at the earliest: %s",
                printable(group_id),
                group.postponed_ms,
                failed.name,
            )
            image = self._context.image
            await self.write(group_id, lambda now: share_states.without_initializing(now, partitions, image()))
        except BrokerError as error:
            logger.warning("the states of share group %s are not recorded: %s", printable(group_id), error)

    def _initialized(self, partitions: Partitions) -> Next:
        return lambda now: share_states.with_initialized(now, partitions, self._context.image())

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` in the background, until the broker stops."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _by_topic(partitions: Mapping[TopicIdPartition, int]) -> dict[bytes, frozenset[int]]:
    found: dict[bytes, set[int]] = {}
    for topic_id, number in partitions:
        found.setdefault(topic_id, set()).add(number)
    return {topic_id: frozenset(numbers) for topic_id, numbers in found.items()}
