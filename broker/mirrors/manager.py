"""MirrorManager: runs one Mirror for each definition of the metadata, and follows its changes."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from barnabas.broker.metadata.mirrors.promotion import promoting_topics
from barnabas.broker.mirrors.mirror import Mirror
from barnabas.broker.mirrors.promotion.promotion import Promotion
from barnabas.broker.mirrors.status import MirrorState, MirrorStatus, PartitionCopyState
from barnabas.protocol.mirrors.definition import DesiredState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.broker.mirrors.parts import MirrorParts
    from barnabas.protocol.mirrors.definition import MirrorDefinition

logger = logging.getLogger(__name__)

APPENDING_THREADS: Final = 2
"""Shared by all mirrors: an append holds its log's lock and waits for the page cache, rarely for the disk."""


class MirrorManager:
    """The mirrors of a broker. Event loop only."""

    def __init__(self, make_parts: Callable[[ThreadPoolExecutor], MirrorParts]) -> None:
        self._executor = ThreadPoolExecutor(APPENDING_THREADS, "mirror")
        self._parts = make_parts(self._executor)
        self._running: dict[str, tuple[Mirror, asyncio.Task[None]]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._promotions: dict[str, tuple[Promotion, asyncio.Task[None]]] = {}
        self._paused: dict[str, MirrorStatus] = {}
        """Mirrors that do not run, with their last status."""

    def apply(self, image: MetadataImage) -> None:
        """Start, change, promote and stop mirrors as the definitions and the states of their topics say."""
        definitions = image.mirrors.definitions
        for name in [*self._running, *self._paused]:
            if name not in definitions:
                self._end(name)
                self._paused.pop(name, None)
        for name, definition in definitions.items():
            running = self._running.get(name)
            is_promoting = bool(promoting_topics(image, name))
            if running is not None and (is_promoting or running[0].definition != definition):
                self._end(name)
                running = None
            if is_promoting:
                self._promote(name)
                continue
            if definition.desired is not DesiredState.RUNNING:
                self._note_idle(definition)
            elif running is None:
                self._paused.pop(name, None)
                self._begin(definition)

    async def stop(self) -> None:
        """Stop all mirrors. What they have appended stays."""
        for name in list(self._running):
            self._end(name)
        promotions = [task for _, task in self._promotions.values()]
        for task in promotions:
            task.cancel()
        await asyncio.gather(*self._ending, *promotions, return_exceptions=True)
        await asyncio.get_running_loop().run_in_executor(None, self._executor.shutdown)

    def statuses(self) -> Mapping[str, MirrorStatus]:
        """Return the statuses of all mirrors. Any thread may call it."""
        statuses = {**self._paused, **{name: mirror.status() for name, (mirror, _) in list(self._running.items())}}
        for name, (promotion, task) in list(self._promotions.items()):
            if not task.done():
                before = statuses.get(name) or MirrorStatus(name, MirrorState.PROMOTING)
                statuses[name] = replace(before, state=MirrorState.PROMOTING, error=promotion.error)
        return statuses

    def _begin(self, definition: MirrorDefinition) -> None:
        mirror = Mirror(definition, self._parts)
        name = f"mirror-{definition.name}"
        before = self._tasks_before(definition.name)
        task = asyncio.get_running_loop().create_task(_run_after(before, mirror), name=name)
        task.add_done_callback(self._ended)
        self._running[definition.name] = mirror, task
        logger.info("mirror %s starts, source=%s", definition.name, ",".join(definition.bootstrap))

    def _promote(self, name: str) -> None:
        """Promote a mirror's topics once its tasks have ended. A promotion that runs takes in later topics itself."""
        known = self._promotions.get(name)
        if known is not None and not known[1].done():
            return
        before = self._tasks_before(name)
        promotion = Promotion(name, self._parts)
        task = asyncio.get_running_loop().create_task(promotion.run(before), name=f"promotion-{name}")
        task.add_done_callback(self._ended)
        self._promotions[name] = promotion, task
        logger.info("mirror %s: the promotion begins", name)

    def _tasks_before(self, name: str) -> list[asyncio.Task[None]]:
        """Return the tasks of a mirror that may still append to its logs."""
        found = [task for task in self._ending if task.get_name() == f"mirror-{name}"]
        promotion = self._promotions.get(name)
        return found if promotion is None or promotion[1].done() else [*found, promotion[1]]

    def _end(self, name: str) -> None:
        running = self._running.pop(name, None)
        if running is None:
            return
        mirror, task = running
        self._paused[name] = _idle(mirror.status(), MirrorState.PAUSED)
        task.cancel()
        self._ending.add(task)
        logger.info("mirror %s stops", name)

    def _note_idle(self, definition: MirrorDefinition) -> None:
        promoted = definition.desired is DesiredState.PROMOTED
        state = MirrorState.PROMOTED if promoted else MirrorState.PAUSED
        before = self._paused.get(definition.name)
        self._paused[definition.name] = _idle(before or MirrorStatus(definition.name, state), state)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._ending.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("a bug: %s has ended", task.get_name(), exc_info=task.exception())


async def _run_after(before: Sequence[asyncio.Task[None]], mirror: Mirror) -> None:
    """Run a mirror once the tasks of its earlier definition have ended: a log has one appender at a time."""
    if before:
        await asyncio.wait(before)
    await mirror.run()


def _idle(status: MirrorStatus, state: MirrorState) -> MirrorStatus:
    """Return the status of a mirror that does not run."""
    of_partition = PartitionCopyState.PROMOTED if state is MirrorState.PROMOTED else PartitionCopyState.PAUSED
    partitions = tuple(replace(each, state=of_partition) for each in status.partitions)
    return replace(status, state=state, error=None, partitions=partitions)
