"""Creation of a coordinator's topic at its first use, and the requests that wait for their partitions.

All 50 partitions take a third of a second, 1.3 s on a busy machine: too long for a first request to wait.

The metadata log gets the topic with all its partitions first. Then their logs are created one by one
(`PartitionSteps`): those that a request waits for first, then the others with pauses. So a request waits only for the
partition of its key, and those of one partition are served in the order of their arrival. If the broker dies meanwhile,
its next start creates the rest.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.partitions.creation_steps import PartitionSteps
from barnabas.broker.printable import printable
from barnabas.broker.repeated_warnings import ANY_HOST, Event, RepeatedWarnings
from barnabas.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.metadata.own_topics import OwnTopic
    from barnabas.broker.metadata_changes import MetadataChanges

logger = logging.getLogger(__name__)

Then = Callable[[BrokerError | None], None]

_Waiting = tuple[str, Then]
"""A group id or transactional id whose partition is awaited, and the callback."""


class TopicCreation:
    """Creates the topic when a first request waits for it. In the event loop only."""

    def __init__(
        self,
        topic: OwnTopic,
        changes: MetadataChanges,
        partition_of: Callable[[str], int],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._topic = topic
        self._changes = changes
        self._partition_of = partition_of
        self._loop = loop
        self._waiting: list[_Waiting] = []
        self._task: asyncio.Task[None] | None = None
        self._steps = PartitionSteps(self._created)
        self._existing: set[int] = set()
        self._warnings = RepeatedWarnings(loop)

    def awaits(self, key: str) -> bool:
        """Return whether the creation is in progress and the key's partition does not exist yet."""
        return self._task is not None and self._partition_of(key) not in self._existing

    def wait(self, key: str, then: Then) -> None:
        """Call `then` once the key's partition exists, or with an error; begin the creation if necessary."""
        self._waiting.append((key, then))
        if self._task is None:
            self._existing = set()
            self._steps = PartitionSteps(self._created)
            self._task = self._loop.create_task(self._create())
        self._steps.want(self._partition_of(key))

    def hurry(self) -> None:
        """Create the remaining partitions without pauses, if the creation is in progress."""
        self._steps.hurry()

    async def finish(self) -> None:
        """Return when all partitions exist."""
        self.hurry()
        if self._task is not None:
            await self._task

    async def _create(self) -> None:
        from barnabas.protocol.messages.topics.topics import NewTopic  # late: most starts create no topic

        error: BrokerError | None = None
        name = self._topic.name
        try:
            result = await self._changes.create_in_steps(NewTopic(name=name), self._steps)
            if result.error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                error = BrokerError(result.error, result.message or "it could not be created")
        except BrokerError as refused:
            error = refused
        except Exception as bug:  # requests must not wait for ever
            logger.exception("a bug in the creation of %s", name)
            error = BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{name} cannot be created: {bug!r}")
        if error is None:
            if self._steps.made:  # not if a client has created it, nor if no log could be
                logger.info("%s is created, partitions=%d", name, self._steps.made)
        else:
            failure = Event(ANY_HOST, "an internal topic could not be created", f" topic={name}")
            message = "%s cannot be created, the next request tries again: %s"
            self._warnings.warn(logger, failure, message, name, error, lines=1, level=logging.ERROR)
        self._task = None
        waiting, self._waiting = self._waiting, []
        self._call(waiting, error)

    def _created(self, number: int) -> None:
        self._existing.add(number)
        now = [each for each in self._waiting if self._partition_of(each[0]) == number]
        if now:
            self._waiting = [each for each in self._waiting if self._partition_of(each[0]) != number]
            self._call(now, None)

    def _call(self, waiting: Sequence[_Waiting], error: BrokerError | None) -> None:
        """Call all callbacks: a bug in one must not stop the others, nor the creation of further partitions."""
        for key, then in waiting:
            try:
                then(error)
            except Exception:
                logger.exception("a bug in a callback of %s, which waited for %s", printable(key), self._topic.name)
