"""ShareStateLoading: loads `__share_group_state` at a start."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.broker.coordinator_log.loading import Loaded, LogLoading
from barnabas.broker.share.shard import StateShard
from barnabas.protocol.topic_name import SHARE_STATE_TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from barnabas.broker.coordinator_log.parts import LogParts
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.share.state_log import ShareStateLog

logger = logging.getLogger(__name__)


class ShareStateLoading:
    """Loads the states of all share partitions."""

    def __init__(
        self, parts: LogParts, log: ShareStateLog, blocking_io: Executor, loaded: Callable[[int], None]
    ) -> None:
        """`loaded` is called with the number of a partition once its keys are served."""
        self._log = log
        self._config = parts.config
        self._loop = parts.loop
        self._blocking_io = blocking_io
        self._loaded = loaded
        self._loading = LogLoading(log.coordinator_log, parts.partitions, parts.store, keys_name="share partitions")

    def begin(self) -> bool:
        """Refuse the keys of all partitions that have to be loaded; return whether there are any."""
        return self._loading.begin()

    async def run(self) -> None:
        """Load what `begin` found."""
        await self._loading.run(
            self._read, lambda: f"share_partitions={sum(len(each.states) for each in self._log.shards.values())}"
        )

    async def _read(self, number: int, partition: Partition) -> Loaded:
        from barnabas.broker.share.loader import load_shard  # only if there is something to load

        log = self._log
        shard = StateShard(log.exists)
        loaded = await self._loop.run_in_executor(
            self._blocking_io,
            load_shard,
            partition.log,
            shard,
            lambda key: log.number_of(key) == number,
            self._config.broker.get_int("share.coordinator.load.buffer.size"),
            log.updates_per_snapshot,
        )
        if partition.is_retired:
            return Loaded(0)
        if loaded.skipped:
            logger.warning(
                "%s-%d has records that are not served here (of unknown types, or of share partitions that belong to"
                " another partition), skipped=%d",
                SHARE_STATE_TOPIC,
                number,
                loaded.skipped,
            )
        log.shards[number] = shard
        return Loaded(loaded.records, lambda: self._loaded(number))
