"""How `__consumer_offsets` comes to be at its first use, and who waits for which of its partitions meanwhile.

The topic is in the metadata log as a whole, at once; its logs are made one by one (`partition_steps`): those that a
group waits for first, the others behind them with pauses. So a group waits for its own partition and for no other,
and is served, in the order in which it came, when that is there. A broker that dies meanwhile makes the rest at its
next start.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.groups.log.offsets_topic import OFFSETS_TOPIC, new_offsets_topic
from barnabas.broker.partitions.creation_steps import PartitionSteps
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.metadata_changes import MetadataChanges

logger = logging.getLogger(__name__)

Then = Callable[[BrokerError | None], None]

_Waiting = tuple[str, Then]
"""A group that waits for its partition, and what to call then."""


class OffsetsTopicCreation:
    """In the event loop only. `wait` begins it where it does not go on already."""

    def __init__(
        self,
        changes: MetadataChanges,
        config: LiveConfig,
        partition_of: Callable[[str], int],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._changes = changes
        self._config = config
        self._partition_of = partition_of
        self._loop = loop
        self._waiting: list[_Waiting] = []
        self._task: asyncio.Task[None] | None = None
        self._steps = PartitionSteps(self._made)
        self._there: set[int] = set()

    def awaits(self, group_id: str) -> bool:
        """Whether the creation goes on, and the group's partition is still to be made."""
        return self._task is not None and self._partition_of(group_id) not in self._there

    def wait(self, group_id: str, then: Then) -> None:
        """Call `then` once the group's partition is there, or with why it is not. Begins the creation."""
        self._waiting.append((group_id, then))
        if self._task is None:
            self._there = set()
            self._steps = PartitionSteps(self._made)
            self._task = self._loop.create_task(self._create())
        self._steps.want(self._partition_of(group_id))

    def hurry(self) -> None:
        """Be done with what is left without pauses; it may be nothing, where the topic was deleted."""
        self._steps.hurry()

    async def finish(self) -> None:
        """Return when all of the topic is there."""
        self.hurry()
        if self._task is not None:
            await self._task

    async def _create(self) -> None:
        error: BrokerError | None = None
        try:
            result = await self._changes.create_in_steps(new_offsets_topic(self._config.broker), self._steps)
            if result.error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                error = BrokerError(result.error, result.message or "it could not be created")
        except BrokerError as refused:
            error = refused
        except Exception as bug:  # nobody may wait for ever
            logger.exception("a bug while %s was made", OFFSETS_TOPIC)
            error = BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{OFFSETS_TOPIC} cannot be made: {bug!r}")
        if error is None:
            logger.info("%s is created, partitions=%d", OFFSETS_TOPIC, len(self._there))
        else:
            logger.error("%s cannot be created, groups wait for the next attempt: %s", OFFSETS_TOPIC, error)
        self._task = None
        waiting, self._waiting = self._waiting, []
        _tell(waiting, error)

    def _made(self, number: int) -> None:
        self._there.add(number)
        now = [each for each in self._waiting if self._partition_of(each[0]) == number]
        if now:
            self._waiting = [each for each in self._waiting if self._partition_of(each[0]) != number]
            _tell(now, None)


def _tell(waiting: Sequence[_Waiting], error: BrokerError | None) -> None:
    """Call all of them: a bug of one is not the others', nor that of the partitions that are still to be made."""
    for group_id, then in waiting:
        try:
            then(error)
        except Exception:
            logger.exception("a bug in what group %s waited for %s with", printable(group_id), OFFSETS_TOPIC)
