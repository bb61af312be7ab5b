"""TransactionCompletion: takes prepared transactions to their end, and tries again where a marker cannot be written.

The decision is in the log already. Markers are written, then the completed state is appended. If a log directory is
full or offline, the transaction stays prepared: its missing markers are tried again after FIRST_RETRY_S, then after
twice as long each time, up to LONGEST_RETRY_S. Clients get CONCURRENT_TRANSACTIONS meanwhile. A bug in an attempt is
logged and tried again in the same way: without a timer the transaction would block its partitions until the next start.

After a growth of `__transaction_state` and a start, some ids belong to another partition, in which they are unknown.
Nobody can decide their transactions any more: they get their missing markers at each start, and no completed state.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from barnabas.broker.network.deferred import Deferred
from barnabas.broker.printable import printable
from barnabas.broker.storage.files.failpoints import failpoint
from barnabas.broker.transactions import outcomes
from barnabas.protocol.topic_name import TRANSACTION_TOPIC

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from barnabas.broker.partitions.registry import PartitionRegistry
    from barnabas.broker.transactions.log import TransactionLog
    from barnabas.broker.transactions.markers import EndMarkers, Missing
    from barnabas.broker.transactions.metadata import PartitionKey, TransactionMetadata
    from barnabas.protocol.errors import BrokerError

logger = logging.getLogger(__name__)

FIRST_RETRY_S: Final = 1.0
LONGEST_RETRY_S: Final = 30.0


class _Pending:
    """A prepared transaction whose markers are not all written. `timer` is set while it waits for its next try.

    `found_in`: the partition of `__transaction_state` in which its id was found, if that is not where it belongs.
    `is_compared`: whether `missing` is known. If not, it has all partitions, and some may contain the marker already.
    """

    __slots__ = ("delay_s", "found_in", "is_compared", "key", "metadata", "missing", "timer")

    def __init__(
        self,
        metadata: TransactionMetadata,
        missing: Sequence[PartitionKey],
        found_in: int | None = None,
        *,
        is_compared: bool = True,
    ) -> None:
        self.metadata = metadata
        self.missing = missing
        self.is_compared = is_compared
        self.found_in = found_in
        self.delay_s = FIRST_RETRY_S
        self.timer: asyncio.TimerHandle | None = None
        self.key = (metadata.transactional_id, found_in)
        """What distinguishes it from all others."""


class TransactionCompletion:
    """Completes prepared transactions, in the event loop."""

    def __init__(
        self,
        log: TransactionLog,
        markers: EndMarkers,
        partitions: PartitionRegistry,
        loop: asyncio.AbstractEventLoop,
        wall_ms: Callable[[], int],
    ) -> None:
        self._log = log
        self._markers = markers
        self._partitions = partitions
        self._loop = loop
        self._wall_ms = wall_ms
        self._pending: dict[tuple[str, int | None], _Pending] = {}
        self._stopped = False

    @property
    def missing_markers(self) -> int:
        """Number of markers that are still to be written. May be read by any thread."""
        return sum(len(each.missing) for each in list(self._pending.values()))

    def complete(self, metadata: TransactionMetadata) -> Deferred[None]:
        """Write the markers of a transaction that was just prepared, and append its completed state.

        The answer comes when that is done, or when it has to be tried again later. After `stop` nothing is written: the
        flush of a decision may end while the logs are closed.
        """
        if self._stopped:
            left: Deferred[None] = Deferred()
            left.resolve(None)
            return left
        return self._attempt(_Pending(metadata, list(metadata.partitions)))

    def recover(self, metadata: TransactionMetadata) -> None:
        """Complete a prepared transaction that was found at a start, without writing a marker twice.

        With standby.min.acks=1 the standby must have the decision first: a takeover could otherwise decide differently
        after consumers have read the records.
        """
        pending = _Pending(metadata, list(metadata.partitions), is_compared=False)

        def settled(error: BrokerError | None) -> None:
            if error is None:
                self._retry(pending)
            else:
                self._retry_later(pending)

        self._pending[pending.key] = pending
        self._log.coordinator_log.settled(metadata.transactional_id).then(settled)

    def recover_unreachable(self, metadata: TransactionMetadata, number: int) -> None:
        """End a transaction, open or prepared, of an id that was found in a partition where it does not belong.

        One that waits for an external coordinator (two-phase commit) stays open: its outcome may be decided there.
        """
        name = printable(metadata.transactional_id)
        if not metadata.state.is_prepared:
            if metadata.has_no_timeout:
                logger.warning("the open transaction of %s hangs: its id belongs to another partition now", name)
                return
            metadata = outcomes.abort_and_fence(
                metadata,
                version=self._log.version,
                new_producer_id=metadata.producer_id,  # not used: no producer continues
                now_ms=self._wall_ms(),
            )
        missing = self._markers.unwritten(metadata)
        if missing:
            logger.info("ending a transaction of %s, whose id belongs to another partition now", name)
            self._attempt(_Pending(metadata, missing, number))

    def retry_now(self) -> None:
        """Try again now: partitions of deleted topics need no markers any more."""
        for pending in list(self._pending.values()):
            if pending.timer is not None:
                pending.timer.cancel()
                self._retry(pending)

    def forget_all(self) -> None:
        """Stop all retries, because `__transaction_state` was deleted or the broker stops."""
        for pending in self._pending.values():
            if pending.timer is not None:
                pending.timer.cancel()
        self._pending.clear()

    def stop(self) -> None:
        """Stop for good. The next start completes what is still prepared."""
        self._stopped = True
        self.forget_all()

    def _attempt(self, pending: _Pending) -> Deferred[None]:
        done: Deferred[None] = Deferred()
        metadata = pending.metadata
        pending.timer = None
        self._pending[pending.key] = pending

        def written(missing: Missing) -> None:
            try:
                self._written(pending, missing)
            except Exception as error:  # noqa: BLE001 - logged and tried again
                self._failed(pending, error)
            done.resolve(None)

        failpoint("transaction.prepared")
        try:
            if not pending.is_compared:
                pending.missing, pending.is_compared = self._markers.unwritten(metadata), True
            answer = self._markers.write(metadata, pending.missing, self._coordinator_epoch(pending))
        except Exception as error:  # noqa: BLE001 - logged and tried again
            self._failed(pending, error)
            done.resolve(None)
            return done
        answer.then(written)
        return done

    def _written(self, pending: _Pending, missing: Missing) -> None:
        """Go on after an attempt to write markers, of which `missing` failed."""
        pending.missing = missing
        if not self._is_current(pending):
            self._drop(pending)
        elif missing:
            self._retry_later(pending)
        elif pending.found_in is not None:
            self._drop(pending)
        else:
            failpoint("transaction.marked")
            self._append_completed(pending)

    def _failed(self, pending: _Pending, error: Exception) -> None:
        """Log the bug that ended an attempt, and try again later."""
        name = printable(pending.metadata.transactional_id)
        logger.error("a bug while completing a transaction of %s", name, exc_info=error)
        if pending.timer is None:
            self._retry_later(pending)

    def _append_completed(self, pending: _Pending) -> None:
        """Append the completed state. Nothing waits for its flush: a start finds the prepared one and the markers."""
        completed = outcomes.complete(pending.metadata, now_ms=self._wall_ms())
        appended = self._log.append(completed)
        failpoint("transaction.completed")
        if not self._is_current(pending):
            self._drop(pending)
            return

        def failed(error: BrokerError | None) -> None:
            if self._is_current(pending):
                name = printable(pending.metadata.transactional_id)
                logger.warning("the completed state of %s cannot be written: %s", name, error)
                self._retry_later(pending)

        appended.then(failed)

    def _retry_later(self, pending: _Pending) -> None:
        if self._stopped:
            return
        pending.timer = self._loop.call_later(pending.delay_s, self._retry, pending)
        pending.delay_s = min(pending.delay_s * 2, LONGEST_RETRY_S)

    def _retry(self, pending: _Pending) -> None:
        if self._stopped:
            return
        if self._is_current(pending):
            self._attempt(pending)
        else:
            self._drop(pending)

    def _is_current(self, pending: _Pending) -> bool:
        """Return whether the transaction is still prepared; the topic of the states may have been deleted."""
        if pending.found_in is not None:
            return self._pending.get(pending.key) is pending
        metadata = pending.metadata
        return self._log.states.get(metadata.transactional_id) is metadata

    def _drop(self, pending: _Pending) -> None:
        if self._pending.get(pending.key) is pending:
            del self._pending[pending.key]

    def _coordinator_epoch(self, pending: _Pending) -> int:
        """Return the leader epoch of the partition that has the id."""
        number = pending.found_in
        if number is None:
            number = self._log.coordinator_log.partition_of(pending.metadata.transactional_id)
        partition = self._partitions.get(TRANSACTION_TOPIC, number)
        return 0 if partition is None else partition.leader_epoch
