"""ShareStateUpkeep: keeps `__share_group_state` short.

Records below the oldest snapshot that is needed are deleted. A share partition that nothing changes has an old
snapshot, and holds back the deletion: its state is written again. Source: Kafka's ShareCoordinatorService.

Unlike Kafka, whose replicas have the new snapshots, nothing is deleted before they are on the disk: a crash of the
machine would take the whole state otherwise, and the group would begin anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.protocol.errors import BrokerError
from barnabas.protocol.topic_name import SHARE_STATE_TOPIC

if TYPE_CHECKING:
    from barnabas.broker.coordinator_log.parts import LogParts
    from barnabas.broker.share.state_log import ShareStateLog

logger = logging.getLogger(__name__)


class ShareStateUpkeep:
    """Looks at all shards in rounds, until the tasks are cancelled."""

    def __init__(self, parts: LogParts, log: ShareStateLog) -> None:
        self._parts = parts
        self._log = log
        self._deleted_below: dict[int, int] = {}

    async def prune_for_ever(self) -> None:
        """Delete what is not needed every share.coordinator.state.topic.prune.interval.ms."""
        await self._repeat("share.coordinator.state.topic.prune.interval.ms", self.prune)

    async def snapshot_for_ever(self) -> None:
        """Write cold states again every share.coordinator.cold.partition.snapshot.interval.ms."""
        await self._repeat("share.coordinator.cold.partition.snapshot.interval.ms", self.snapshot_cold)

    def prune(self, number: int) -> None:
        """Delete the records of one partition that are not needed, once what replaces them is on the disk."""
        shard = self._log.shards[number]
        needed = shard.needed.below_is_redundant
        partition = self._parts.partitions.get(SHARE_STATE_TOPIC, number)
        if needed is None or partition is None or self._deleted_below.get(number) == needed:
            return

        def synced(error: BrokerError | None) -> None:
            try:
                if error is not None:
                    raise error
                partition.delete_records(needed)
                self._deleted_below[number] = needed
            except BrokerError as refused:
                _note(number, refused)

        self._log.coordinator_log.synced(number).then(synced)

    def snapshot_cold(self, number: int) -> None:
        """Write the states of one partition again that were last written long ago."""
        interval_ms = self._parts.config.broker.get_int("share.coordinator.cold.partition.snapshot.interval.ms")
        records = self._log.shards[number].snapshots_of_cold(interval_ms, self._parts.wall_ms())
        if records:
            self._log.append(number, records).then(lambda error: _note(number, error))

    async def _repeat(self, interval_property: str, work: Callable[[int], None]) -> None:
        while True:
            await asyncio.sleep(self._parts.config.broker.get_int(interval_property) / 1000)
            for number in list(self._log.shards):
                if number not in self._log.shards or self._log.coordinator_log.is_loading(number):
                    continue
                try:
                    work(number)
                except BrokerError as error:
                    _note(number, error)
                except Exception:
                    logger.exception("a round of upkeep failed, trying again after %s", interval_property)
                await asyncio.sleep(0)


def _note(number: int, error: BrokerError | None) -> None:
    if error is not None:
        logger.warning("%s-%d is not shortened until the next round: %s", SHARE_STATE_TOPIC, number, error)
