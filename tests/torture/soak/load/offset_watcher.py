"""An observer of committed offsets, which sees those that a start has lost before the members commit again."""

from __future__ import annotations

import asyncio

from barnabas import Admin, AdminConfig, TopicPartition
from barnabas.clients.errors import ClientError
from tests.torture.soak.history import Commit
from tests.torture.soak.load.stage import PARTITIONS, Stage, pause

_NONE = -1
_PATIENCE_S = 1.0


class OffsetWatcher:
    """Fetches the offsets of all groups, again and again."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    async def run(self) -> None:
        """Watch until the stage's writers end."""
        stage = self._stage
        while not stage.writers_end.is_set():
            try:
                async with Admin(AdminConfig(bootstrap=stage.bootstrap)) as admin:
                    while not stage.writers_end.is_set():
                        for group in sorted(stage.groups):
                            await self._watch(admin, group)
                        await pause(0.05)
            except ClientError as error:
                stage.note_error("watcher", error)
                await pause(0.05)

    async def _watch(self, admin: Admin, group: str) -> None:
        stage = self._stage
        topics = (stage.plain, stage.ledger)
        places = [TopicPartition(topic, number) for topic in topics for number in range(PARTITIONS)]
        began = stage.history.tick()
        # A commit is answered before its markers are written where a log directory is full or hangs, as in Kafka. The
        # places are named: where the only offset is one of an open transaction, an answer with all would lack it.
        try:
            async with asyncio.timeout(_PATIENCE_S):
                found = await admin.group_offsets(group, places, require_stable=True)
        except TimeoutError:
            return  # one transaction follows the other
        ended = stage.history.tick()
        for place in places:
            committed = found.get(place)
            offset = _NONE if committed is None else committed.offset
            stage.history.commits.append(
                Commit(group, (place.topic, place.partition), offset, began, ended, is_read=True)
            )
