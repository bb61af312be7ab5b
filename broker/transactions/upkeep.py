"""TransactionUpkeep: aborts transactions that timed out, and forgets transactional ids that are no longer used.

Transactions with two-phase commit have no timeout. Sources: Kafka's TransactionCoordinator.abortTimedOutTransactions,
TransactionStateManager.removeExpiredTransactionalIds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Final

from barnabas.broker.printable import printable
from barnabas.broker.transactions import transitions

if TYPE_CHECKING:
    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.network.deferred import Deferred
    from barnabas.broker.transactions.log import TransactionLog
    from barnabas.broker.transactions.metadata import TransactionMetadata
    from barnabas.protocol.errors import BrokerError

logger = logging.getLogger(__name__)

IDS_PER_TURN: Final = 1000
"""Ids handled before the event loop gets its turn; also the number of tombstones of one append."""

Abort = Callable[["TransactionMetadata"], "Deferred[BrokerError | None]"]
"""Aborts an open transaction and fences its producer."""


class TransactionUpkeep:
    """Looks for timed-out transactions and expired ids in rounds, until the tasks are cancelled."""

    def __init__(self, log: TransactionLog, config: LiveConfig, wall_ms: Callable[[], int], abort: Abort) -> None:
        self._log = log
        self._config = config
        self._wall_ms = wall_ms
        self._abort = abort

    async def abort_for_ever(self) -> None:
        """Abort timed-out transactions every transaction.abort.timed.out.transaction.cleanup.interval.ms."""
        await self._repeat("transaction.abort.timed.out.transaction.cleanup.interval.ms", self.abort_timed_out)

    async def expire_for_ever(self) -> None:
        """Remove expired ids every transaction.remove.expired.transaction.cleanup.interval.ms."""
        await self._repeat("transaction.remove.expired.transaction.cleanup.interval.ms", self.remove_expired)

    async def abort_timed_out(self) -> None:
        """Run one round of aborts."""
        now_ms = self._wall_ms()
        states = self._log.states
        for position, transactional_id in enumerate(list(self._log.open_ids)):
            if position % IDS_PER_TURN == IDS_PER_TURN - 1:
                await asyncio.sleep(0)
            metadata = states.get(transactional_id)
            if metadata is not None and transitions.has_timed_out(metadata, now_ms):
                logger.info(
                    "aborting a transaction that timed out, transactional.id=%s producer_id=%d timeout_ms=%d",
                    printable(transactional_id),
                    metadata.producer_id,
                    metadata.timeout_ms,
                )
                self._abort(metadata).then(_log_failure)

    async def remove_expired(self) -> None:
        """Run one round of removals."""
        expiration_ms = self._config.broker.get_int("transactional.id.expiration.ms")
        now_ms = self._wall_ms()
        by_partition: dict[int, list[str]] = {}
        for position, metadata in enumerate(list(self._log.states.values())):
            if position % IDS_PER_TURN == IDS_PER_TURN - 1:
                await asyncio.sleep(0)
            if transitions.has_expired(metadata, now_ms, expiration_ms):
                number = self._log.coordinator_log.partition_of(metadata.transactional_id)
                by_partition.setdefault(number, []).append(metadata.transactional_id)
        for number, transactional_ids in by_partition.items():
            for chunk in _chunks(transactional_ids):
                self._remove(number, chunk, now_ms, expiration_ms)
                await asyncio.sleep(0)

    def _remove(self, number: int, transactional_ids: list[str], now_ms: int, expiration_ms: int) -> None:
        """Remove the ids that nothing has used since the round began."""
        states = self._log.states
        expired = [
            each
            for each in transactional_ids
            if (metadata := states.get(each)) is not None and transitions.has_expired(metadata, now_ms, expiration_ms)
        ]
        if not expired:
            return

        def removed(error: BrokerError | None) -> None:
            if error is None:
                logger.info("transactional ids expired, partition=%d count=%d", number, len(expired))
            else:
                logger.warning("expired transactional ids are kept until the next round: %s", error)

        self._log.forget(number, expired).then(removed)

    async def _repeat(self, interval_property: str, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(self._config.broker.get_int(interval_property) / 1000)
            try:
                await work()
            except Exception:
                logger.exception("a round of upkeep failed, trying again after %s", interval_property)


def _chunks(transactional_ids: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(transactional_ids), IDS_PER_TURN):
        yield transactional_ids[start : start + IDS_PER_TURN]


def _log_failure(error: BrokerError | None) -> None:
    if error is not None:
        logger.warning("a transaction that timed out could not be aborted, trying again in the next round: %s", error)
