"""EndMarkers: writes the end markers of a prepared transaction into its partitions.

Partitions of `__consumer_offsets` go through the group coordinator, whose pending offsets the marker commits or drops.
A marker is missing while it could not be appended, or not be flushed where the topic's flush.messages demands that:
the transaction must not count as completed before, or a power cut could leave it open in that partition for ever. For
the same reason a marker waits for the standby (standby.min.acks=1), however long that takes: a takeover could lose it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.network.deferred import Deferred
from barnabas.broker.partitions.kernels.kernel import appends
from barnabas.broker.printable import printable
from barnabas.broker.storage.files.failpoints import any_armed, failpoint
from barnabas.broker.storage.log.append import TransactionEnd
from barnabas.broker.transactions.metadata import EPOCH_PER_TRANSACTION, PartitionKey, TransactionMetadata
from barnabas.broker.transactions.state import TransactionState
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.records.end_marker import EndMarker
from barnabas.protocol.topic_name import OFFSETS_TOPIC

if TYPE_CHECKING:
    from barnabas.broker.coordinator_log.log import Appended
    from barnabas.broker.partitions.flush_waits import FlushWaits
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.partitions.registry import PartitionRegistry

logger = logging.getLogger(__name__)

Missing = list[PartitionKey]
"""Partitions whose marker could not be written."""


class OffsetsMarkers(Protocol):
    """The group coordinator, as far as markers need it."""

    def write_offsets_marker(self, number: int, end: TransactionEnd) -> Appended:
        """Append a marker to a partition of `__consumer_offsets`. Raises BrokerError."""
        ...


class EndMarkers:
    """Writes markers, in the event loop."""

    def __init__(
        self,
        partitions: PartitionRegistry,
        offsets: OffsetsMarkers,
        flush_waits: FlushWaits,
        wall_ms: Callable[[], int],
    ) -> None:
        self._partitions = partitions
        self._offsets = offsets
        self._flush_waits = flush_waits
        self._wall_ms = wall_ms

    def write(
        self, metadata: TransactionMetadata, partitions: Iterable[PartitionKey], coordinator_epoch: int
    ) -> Deferred[Missing]:
        """Write the markers of a prepared transaction; return the partitions where that failed, once all are durable.

        A partition that no longer exists is not among them. Raises nothing.
        """
        marker = EndMarker(metadata.state is TransactionState.PREPARE_COMMIT, coordinator_epoch)
        end = TransactionEnd(metadata.producer_id, metadata.producer_epoch, marker, metadata.client_version)
        missing: Missing = []
        waits: list[tuple[PartitionKey, Appended]] = []
        keys = list(partitions)
        for key, flush_to in zip(keys, self._append_commits(keys, end), strict=True):
            if flush_to == 0:
                continue
            try:
                wait = self.append(key, end) if flush_to < 0 else self._flushed(self._served(key), flush_to)
            except BrokerError as error:
                if self._is_over(metadata, key, error):
                    continue
                _log_missing(metadata, key, error)
                missing.append(key)
            except Exception:
                # The markers of the other partitions must not wait for this one's bug to be mended.
                logger.exception("a bug while writing the end marker of %s to %s", _id(metadata), _name(key))
                missing.append(key)
            else:
                failpoint("transaction.marker")
                if wait is not None:
                    waits.append((key, wait))
        answer: Deferred[Missing] = Deferred()
        _resolve_after(metadata, waits, missing, answer)
        return answer

    def append(self, key: PartitionKey, end: TransactionEnd) -> Appended | None:
        """Write one marker; return the answer of its flush and of the standby where one is due.

        Raises BrokerError.
        """
        partition = self._served(key)
        if key[0] == OFFSETS_TOPIC:
            return self._offsets.write_offsets_marker(key[1], end)
        appended = partition.append_marker(end)
        end_offset = appended.last_offset + 1
        flushed = self._flushed(partition, end_offset) if appended.flush_due else None
        return partition.when_replicated(end_offset, flushed)

    def _append_commits(self, keys: Sequence[PartitionKey], end: TransactionEnd) -> Sequence[int]:
        """Write the markers that the compiled append can; return what it returns, -1 for those that are left."""
        if appends is None or not end.marker.is_commit or any_armed():
            return [-1] * len(keys)
        find = self._partitions.by_key.get
        served = [None if key[0] == OFFSETS_TOPIC else find(key) for key in keys]
        now_ms = self._wall_ms()
        found: list[int] = appends.append_commits(served, end, end.batch(now_ms, log_append_time=False), now_ms)
        return found

    def _served(self, key: PartitionKey) -> Partition:
        """Return a partition. Raises BrokerError."""
        partition = self._partitions.get(*key)
        if partition is None:
            raise self._partitions.refusal(*key)
        return partition

    def unwritten(self, metadata: TransactionMetadata) -> list[PartitionKey]:
        """Return the partitions of a prepared transaction that do not show its marker, after a start.

        With an epoch per transaction, an epoch below the marker's shows that the marker is missing also where the
        transaction wrote nothing.
        """
        return [key for key in metadata.partitions if not self._shows_marker(metadata, key)]

    def _shows_marker(self, metadata: TransactionMetadata, key: PartitionKey) -> bool:
        partition = self._partitions.get(*key)
        if partition is None:
            return False  # offline, or deleted: `write` decides
        entry = partition.producer(metadata.producer_id)
        if entry is not None and entry.has_open_transaction:
            return False
        if metadata.client_version < EPOCH_PER_TRANSACTION:
            return True
        return entry is not None and entry.epoch >= metadata.producer_epoch

    def _flushed(self, partition: Partition, up_to_offset: int) -> Appended:
        answer: Appended = Deferred()

        def flushed(failed: Exception | None) -> None:
            error = None
            if failed is not None:
                message = f"{partition.log.topic_partition} could not be flushed: {failed}"
                error = BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, message)
            answer.resolve(error)

        self._flush_waits.wait(partition, up_to_offset, flushed)
        return answer

    def _is_over(self, metadata: TransactionMetadata, key: PartitionKey, error: BrokerError) -> bool:
        """Return whether a refused marker ends nothing: the partition is gone, or the transaction ended there.

        The transactions in a partition that a mirror has taken over are those of its source.

        A marker of an administrator (WriteTxnMarkers) with a higher epoch may have ended it before.
        """
        if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            logger.info("%s left a transaction of %s: it does not exist", _name(key), _id(metadata))
            return True
        if error.code is ErrorCode.POLICY_VIOLATION:
            logger.info("%s left a transaction of %s: %s", _name(key), _id(metadata), error)
            return True
        partition = self._partitions.get(*key)
        fenced = error.code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
        if fenced and partition is not None and not partition.has_open_transaction(metadata.producer_id):
            logger.warning(
                "%s refused the end marker of a transaction that is not open there, transactional.id=%s: %s",
                _name(key),
                _id(metadata),
                error,
            )
            return True
        return False


def _resolve_after(
    metadata: TransactionMetadata,
    waits: list[tuple[PartitionKey, Appended]],
    missing: Missing,
    answer: Deferred[Missing],
) -> None:
    """Resolve `answer` with `missing`, to which failed waits are added, once all waits have ended."""
    left = len(waits) + 1

    def ended(key: PartitionKey | None, error: BrokerError | None) -> None:
        nonlocal left
        if error is not None and key is not None:
            _log_missing(metadata, key, error)
            missing.append(key)
        left -= 1
        if left == 0:
            answer.resolve(missing)

    for key, wait in waits:
        wait.then(lambda error, key=key: ended(key, error))  # type: ignore[misc]
    ended(None, None)


def _log_missing(metadata: TransactionMetadata, key: PartitionKey, error: BrokerError) -> None:
    logger.warning("the end marker of %s cannot be written to %s: %s", _id(metadata), _name(key), error)


def _name(key: PartitionKey) -> str:
    return f"{printable(key[0])}-{key[1]}"


def _id(metadata: TransactionMetadata) -> str:
    return printable(metadata.transactional_id)
