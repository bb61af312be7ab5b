"""StateLoading: loads `__transaction_state` at a start, and completes the transactions that are found prepared."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.coordinator_log.loading import Loaded, LogLoading
from barnabas.protocol.topic_name import TRANSACTION_TOPIC

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from barnabas.broker.coordinator_log.parts import LogParts
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.transactions.completion import TransactionCompletion
    from barnabas.broker.transactions.log import TransactionLog
    from barnabas.broker.transactions.metadata import TransactionMetadata

logger = logging.getLogger(__name__)


class StateLoading:
    """Loads the states of all transactional ids."""

    def __init__(
        self, parts: LogParts, log: TransactionLog, completion: TransactionCompletion | None, blocking_io: Executor
    ) -> None:
        """`completion` None: the broker only reads, so prepared transactions stay as they are."""
        self._log = log
        self._completion = completion
        self._config = parts.config
        self._loop = parts.loop
        self._blocking_io = blocking_io
        self._loading = LogLoading(log.coordinator_log, parts.partitions, parts.store, keys_name="transactional ids")

    def begin(self) -> bool:
        """Refuse the ids of all partitions that have to be loaded; return whether there are any."""
        return self._loading.begin()

    async def run(self) -> None:
        """Load what `begin` found."""
        await self._loading.run(
            self._read, lambda: f"transactional_ids={len(self._log.states)} open={len(self._log.open_ids)}"
        )

    async def _read(self, number: int, partition: Partition) -> Loaded:
        from barnabas.broker.transactions.loader import load_states  # only if there is something to load

        partition_of = self._log.coordinator_log.partition_of
        loaded = await self._loop.run_in_executor(
            self._blocking_io,
            load_states,
            partition.log,
            lambda transactional_id: partition_of(transactional_id) == number,
            self._config.broker.get_int("transaction.state.log.load.buffer.size"),
        )
        if partition.is_retired:
            return Loaded(0)
        if loaded.skipped:
            logger.warning(
                "%s-%d has records that are not served here (of unknown versions, or of transactional ids that belong"
                " to another partition), skipped=%d",
                TRANSACTION_TOPIC,
                number,
                loaded.skipped,
            )
        prepared = []
        for transactional_id, metadata in loaded.states.items():
            self._log.replay(transactional_id, metadata)
            if metadata.state.is_prepared:
                prepared.append(metadata)
        if not prepared and not loaded.unreachable:
            return Loaded(loaded.records)
        return Loaded(loaded.records, partial(self._recover, number, prepared, loaded.unreachable))

    def _recover(
        self, number: int, prepared: list[TransactionMetadata], unreachable: list[TransactionMetadata]
    ) -> None:
        if self._completion is None:
            return
        if prepared:
            logger.info("completing transactions that were prepared before the start, count=%d", len(prepared))
        for metadata in prepared:
            self._completion.recover(metadata)
        for metadata in unreachable:
            self._completion.recover_unreachable(metadata, number)
