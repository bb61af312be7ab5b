"""Producer state of a log: rejects duplicate batches and sequence gaps, and tracks open transactions.

Per producer id it has the epoch and the last five batches. A batch with the same epoch and sequences as one of them is
a duplicate and is answered with the stored offsets. Otherwise its first sequence must follow the last one. Sequences
wrap from 2^31 - 1 to 0, a new epoch begins at 0, and a producer without state (new, expired, or deleted with its
records) may begin anywhere. After batches with the epoch -1 any sequence is accepted.

Open transactions bound the last stable offset. A transaction opens with a producer's first transactional batch and ends
with the coordinator's marker, whose epoch may be higher than the data's (transaction.version 2 raises it for each
transaction); a marker without an open transaction only changes the epochs. For an aborted transaction the segment with
the marker gets a row in its transaction index.

Snapshots make a restart cheap. One is taken at every roll, at close and during recovery, named by its end offset
(exclusive), if that is above the last snapshot's. A snapshot has one batch per producer.

A producer expires after producer.id.expiration.ms without a batch. Kafka counts from the last record's timestamp, so a
producer that copies old records expires while it is writing. Here such a producer moves from `producers`, which equals
Kafka's state and is what snapshots contain byte for byte, to `overdue`, which is in memory only. There its duplicates
are still detected until the wall clock of its last append is as old, too. After a load that is the time of the last
write to the segment with its last batch (producer_rebuild), not the time of the start: otherwise a broker that restarts
every night would never expire a producer.

The caller serializes all calls (PartitionLog's lock). Source: Kafka ProducerStateManager, ProducerAppendInfo.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.files.file_names import (
    DELETED_SUFFIX,
    SNAPSHOT_SUFFIX,
    FileKind,
    file_name,
    parse_file_name,
)
from barnabas.broker.storage.index.transaction_index import VERSION, AbortedTxn
from barnabas.broker.storage.producers.entry import (
    MAX_EPOCH,
    MAX_SEQUENCE,
    NO_EPOCH,
    NO_OFFSET,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    REMEMBERED_BATCHES,
    TRANSACTION_VERSION_OF_EPOCH_BUMPS,
    BatchMetadata,
    LastRecord,
    ProducerEntry,
)
from barnabas.broker.storage.producers.expiration import ProducerExpiration
from barnabas.broker.storage.producers.open_transactions import OpenTransactions
from barnabas.broker.storage.producers.snapshot import (
    SnapshotRow,
    decode_snapshot,
    java_hash_map_order,
    write_snapshot,
)
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.end_marker import EndMarker
from barnabas.protocol.records.kernels.scanned import ProducerBatch
from barnabas.protocol.topic_partition import TopicPartition

_MIN_TABLE_SIZE = 16
_LOAD_FACTOR_PERCENT = 75

logger = logging.getLogger(__name__)

_new_tuple = tuple.__new__


class ProducerState:
    """Producers of one log, and their snapshot files."""

    __slots__ = (
        "_directory",
        "_expiration",
        "_table_size",
        "_topic_partition",
        "last_snapshot_offset",
        "map_end_offset",
        "open_transactions",
        "overdue",
        "producers",
        "snapshot_offsets",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        directory: Path,
        expiration: ProducerExpiration,
        snapshot_offsets: set[int] | None = None,
        overdue: dict[int, ProducerEntry] | None = None,
    ) -> None:
        """`snapshot_offsets` are the snapshots in the directory, updated from now on; None lists the directory.

        Recovery creates a state per segment and passes the same `overdue` to each, because snapshots do not contain it.
        """
        self.producers: dict[int, ProducerEntry] = {}
        self.overdue: dict[int, ProducerEntry] = {} if overdue is None else overdue
        """Producers that Kafka would have expired by their records' timestamps but that have written lately.

        No producer is in both maps.
        """
        self.map_end_offset = 0
        """The log end offset that this state is for."""
        self.last_snapshot_offset = 0
        self._topic_partition = topic_partition
        self._directory = directory
        self._expiration = expiration
        self.open_transactions = OpenTransactions()
        self._table_size = _MIN_TABLE_SIZE
        self.snapshot_offsets = set(_list_snapshots(directory)) if snapshot_offsets is None else snapshot_offsets

    @property
    def first_unstable_offset(self) -> int | None:
        """First offset of the oldest open transaction, or None."""
        return self.open_transactions.first_offset

    def last_records(self) -> dict[int, LastRecord]:
        """Return the last data offset per producer id: compaction keeps that batch's header even if it is emptied."""
        return {
            entry.producer_id: LastRecord(entry.batches[-1].last_offset if entry.batches else NO_OFFSET, entry.epoch)
            for entry in self.producers.values()
        }

    @property
    def is_empty(self) -> bool:
        """Whether no producer is known."""
        return not self.producers

    def check_batch(
        self, producer_id: int, epoch: int, base_sequence: int, offset_delta: int, is_transactional: bool = False
    ) -> BatchMetadata | None:
        """Return the stored batch that this one duplicates, or None if it is new and may be appended.

        Whether a transactional batch belongs to a transaction of its coordinator is not checked here.

        Raises BrokerError INVALID_PRODUCER_EPOCH (47) for an old epoch, OUT_OF_ORDER_SEQUENCE_NUMBER (45) for a gap,
        INVALID_TXN_STATE (48) for a batch outside of the producer's open transaction.
        """
        entry = self.producers.get(producer_id) or self.overdue.get(producer_id)
        if entry is None:
            if epoch < NO_EPOCH:
                self._refuse_epoch(ProducerEntry(producer_id, NO_EPOCH), epoch)
            return None
        if epoch == entry.epoch:
            last_sequence = (base_sequence + offset_delta) & MAX_SEQUENCE
            for batch in entry.batches:
                if batch.last_sequence == last_sequence and batch.first_sequence == base_sequence:
                    return batch
            expected = (entry.batches[-1].last_sequence + 1) & MAX_SEQUENCE if entry.batches else 0
            if base_sequence != expected and epoch != NO_EPOCH:
                raise self._refusal(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"producer {producer_id} sent sequence {base_sequence}, expected is {expected}",
                )
        elif epoch < entry.epoch:
            self._refuse_epoch(entry, epoch)
        elif base_sequence != 0 and entry.epoch != NO_EPOCH:
            raise self._refusal(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id} begins epoch {epoch} with sequence {base_sequence}, not 0",
            )
        if entry.txn_first_offset != NO_OFFSET and not is_transactional:
            raise self._refusal(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {producer_id} sent a batch outside of its transaction, open since {entry.txn_first_offset}",
            )
        return None

    def check_epoch(self, producer_id: int, epoch: int) -> None:
        """Check a coordinator's batch, which has no sequences. Raises BrokerError INVALID_PRODUCER_EPOCH (47)."""
        entry = self.producers.get(producer_id)
        if entry is not None and epoch < entry.epoch:
            self._refuse_epoch(entry, epoch)

    def check_marker(self, producer_id: int, epoch: int, marker: EndMarker, transaction_version: int = 0) -> None:
        """Check that a coordinator may write this marker.

        Raises BrokerError INVALID_PRODUCER_EPOCH (47) for an old producer epoch, TRANSACTION_COORDINATOR_FENCED (52)
        for a coordinator that was replaced. A marker with the producer's current epoch ends its transaction before
        transaction.version 2. From 2 on, a marker has a higher epoch than its data: with the current epoch it is only
        accepted without an open transaction, as the repetition of a stored marker. (Kafka also accepts it for the
        largest epoch, which a producer should never get.)
        """
        entry = self.producers.get(producer_id)
        if entry is None:
            return
        is_late = (
            transaction_version >= TRANSACTION_VERSION_OF_EPOCH_BUMPS
            and epoch == entry.epoch != MAX_EPOCH
            and entry.txn_first_offset != NO_OFFSET
        )
        if epoch < entry.epoch or is_late:
            raise self._refusal(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id} has epoch {epoch} in a marker, the last seen is {entry.epoch}"
                f" (transaction.version {transaction_version})",
            )
        if marker.coordinator_epoch < entry.coordinator_epoch:
            raise self._refusal(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"producer {producer_id}: coordinator epoch {marker.coordinator_epoch}, "
                f"the last seen is {entry.coordinator_epoch}",
            )

    def note_batch(
        self,
        producer_id: int,
        epoch: int,
        base_sequence: int,
        last_offset: int,
        offset_delta: int,
        timestamp: int,
        *,
        is_transactional: bool = False,
        appended_ms: int = NO_TIMESTAMP,
    ) -> bool:
        """Add a stored data batch to the state, without any check: a replay must not fail.

        `timestamp` is the records' largest, `appended_ms` the wall clock of the append, if known. Returns whether a
        transaction begins with the batch.
        """
        entry = self.producers.get(producer_id)
        if entry is None:
            entry = self._revive(producer_id, epoch)
        elif epoch != entry.epoch:
            entry.move_to_epoch(epoch)
        last_sequence = (base_sequence + offset_delta) & MAX_SEQUENCE if base_sequence >= 0 else NO_SEQUENCE
        if len(entry.batches) == REMEMBERED_BATCHES:
            del entry.batches[0]
        entry.batches.append(_new_tuple(BatchMetadata, (last_sequence, last_offset, offset_delta, timestamp)))
        entry.last_timestamp = timestamp
        entry.last_append_ms = appended_ms
        if is_transactional and entry.txn_first_offset == NO_OFFSET:
            entry.txn_first_offset = last_offset - offset_delta
            self.open_transactions.begin(entry.txn_first_offset, producer_id)
            return True
        return False

    def note_data(self, batch: RecordBatch | ProducerBatch, *, appended_ms: int = NO_TIMESTAMP) -> None:
        """Call `note_batch` with the fields of a stored or scanned batch."""
        self.note_batch(
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            batch.last_offset,
            batch.last_offset_delta,
            batch.max_timestamp,
            is_transactional=batch.is_transactional,
            appended_ms=appended_ms,
        )

    def aborted_by(self, producer_id: int, marker: EndMarker, offset: int) -> AbortedTxn | None:
        """Return the transaction index row for a marker at `offset`, or None if it aborts nothing.

        Call it before `note_marker`.
        """
        entry = self.producers.get(producer_id)
        if marker.is_commit or entry is None or entry.txn_first_offset == NO_OFFSET:
            return None
        other = self.open_transactions.first_offset_without(entry.txn_first_offset)
        stable = offset + 1 if other is None else other
        return AbortedTxn(VERSION, producer_id, entry.txn_first_offset, offset, stable)

    def note_marker(self, producer_id: int, epoch: int, marker: EndMarker, timestamp: int) -> None:
        """Add a stored end marker to the state. Call `aborted_by` first."""
        entry = self.producers.get(producer_id)
        if entry is None:
            entry = self._revive(producer_id, epoch)
        elif epoch != entry.epoch:
            entry.move_to_epoch(epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = timestamp
        if entry.txn_first_offset != NO_OFFSET:
            self.open_transactions.end(entry.txn_first_offset)
            entry.txn_first_offset = NO_OFFSET

    def remove_expired(self, now_ms: int) -> int:
        """Remove expired producers; return how many."""
        before = len(self.producers) + len(self.overdue)
        for producer_id in [each.producer_id for each in self.producers.values() if self._is_expired(each, now_ms)]:
            self.overdue[producer_id] = self.producers.pop(producer_id)
        for producer_id in [each.producer_id for each in self.overdue.values() if self._is_silent(each, now_ms)]:
            del self.overdue[producer_id]
        return before - len(self.producers) - len(self.overdue)

    def take_snapshot(self, *, durably: bool) -> Path | None:
        """Write a snapshot at `map_end_offset`; return None if one exists already. Raises OSError."""
        if self.map_end_offset <= self.last_snapshot_offset:
            return None
        path = self._path(self.map_end_offset)
        write_snapshot(path, self._rows(), durably=durably)
        self.snapshot_offsets.add(self.map_end_offset)
        self.last_snapshot_offset = self.map_end_offset
        return path

    def truncate_and_reload(
        self, log_start_offset: int, log_end_offset: int, now_ms: int, written_ms: Callable[[int], int]
    ) -> None:
        """Load the newest snapshot in (log start, log end], if any, and delete those outside. Raises OSError.

        `written_ms(last_offset)` returns the latest wall clock at which that batch can have been appended.
        """
        for offset in sorted(self.snapshot_offsets):
            if offset > log_end_offset or offset <= log_start_offset:
                self._remove_snapshot(offset)
        if log_end_offset == self.map_end_offset:
            self.on_log_start_moved(log_start_offset)
            return
        overdue = dict(self.overdue)
        self._clear()
        while self.snapshot_offsets:
            offset = max(self.snapshot_offsets)
            try:
                path = self._path(offset)
                rows = decode_snapshot(path.read_bytes(), path)
            except (CorruptFileError, FileNotFoundError) as error:
                logger.warning("deleting a bad producer snapshot and taking the one before: %s", error)
                self._remove_snapshot(offset)
                continue
            for row in rows:
                self._load_row(row, now_ms, written_ms)
            self.open_transactions.load(self.producers.values())
            self._keep_overdue(overdue, offset)
            self.map_end_offset = self.last_snapshot_offset = offset
            return
        self.map_end_offset = self.last_snapshot_offset = log_start_offset

    def truncate_fully(self, offset: int) -> None:
        """Clear the state and delete all snapshots, because the log starts over at `offset`. Raises OSError."""
        self._clear()
        for snapshot in sorted(self.snapshot_offsets):
            self._remove_snapshot(snapshot)
        self.last_snapshot_offset = 0
        self.map_end_offset = offset

    def on_log_start_moved(self, log_start_offset: int) -> None:
        """Follow a higher log start offset."""
        self.map_end_offset = max(self.map_end_offset, log_start_offset)
        self.last_snapshot_offset = max(self.snapshot_offsets, default=log_start_offset)

    def remove_stray_snapshots(self, base_offsets: set[int]) -> None:
        """Delete snapshots without a segment, except a last one above all segments. Raises OSError."""
        strays = sorted(self.snapshot_offsets - base_offsets)
        if strays and (not base_offsets or strays[-1] > max(base_offsets)):
            strays.pop()
        for offset in strays:
            self._remove_snapshot(offset)

    def mark_snapshot_deleted(self, offset: int) -> Path | None:
        """Rename the snapshot of a deleted segment to `.deleted`; return its new path, if any. Raises OSError."""
        if offset not in self.snapshot_offsets:
            return None
        self.snapshot_offsets.discard(offset)
        path = self._path(offset)
        deleted = path.with_name(path.name + DELETED_SUFFIX)
        try:
            os.rename(path, deleted)
        except FileNotFoundError:
            return None
        return deleted

    def move_to(self, directory: Path) -> None:
        """Follow a rename of the partition directory."""
        self._directory = directory

    def exchange_files(self, other: ProducerState) -> None:
        """Swap directory and snapshots with the state of this log's copy; the producers stay."""
        self._directory, other._directory = other._directory, self._directory
        self.snapshot_offsets, other.snapshot_offsets = other.snapshot_offsets, self.snapshot_offsets
        self.last_snapshot_offset, other.last_snapshot_offset = other.last_snapshot_offset, self.last_snapshot_offset

    def _revive(self, producer_id: int, epoch: int) -> ProducerEntry:
        """Add a producer that is not in `producers`: an overdue one, or a new one."""
        entry = self.overdue.pop(producer_id, None)
        if entry is None:
            return self._add(ProducerEntry(producer_id, epoch))
        entry.coordinator_epoch = NO_EPOCH  # as for a new producer: Kafka has no entry here
        self._add(entry).move_to_epoch(epoch)
        return entry

    def _add(self, entry: ProducerEntry) -> ProducerEntry:
        self.producers[entry.producer_id] = entry
        while len(self.producers) * 100 > self._table_size * _LOAD_FACTOR_PERCENT:
            self._table_size *= 2
        return entry

    def _is_expired(self, entry: ProducerEntry, now_ms: int) -> bool:
        """Return whether the producer has expired by Kafka's rule."""
        return entry.txn_first_offset == NO_OFFSET and now_ms - entry.last_timestamp >= self._expiration.ms

    def _is_silent(self, entry: ProducerEntry, now_ms: int) -> bool:
        return now_ms - entry.last_append_ms >= self._expiration.ms

    def _load_row(self, row: SnapshotRow, now_ms: int, written_ms: Callable[[int], int]) -> None:
        entry = ProducerEntry(row.producer_id, row.producer_epoch)
        entry.coordinator_epoch = row.coordinator_epoch
        entry.last_timestamp = row.timestamp
        if row.last_offset >= 0:
            entry.last_append_ms = written_ms(row.last_offset)
        entry.txn_first_offset = row.txn_first_offset if row.txn_first_offset >= 0 else NO_OFFSET
        if row.last_offset >= 0:
            entry.batches.append(BatchMetadata(row.last_sequence, row.last_offset, row.offset_delta, row.timestamp))
        if self._is_expired(entry, now_ms):
            if not self._is_silent(entry, now_ms):
                self.overdue[row.producer_id] = entry
            return
        self._add(entry)

    def _keep_overdue(self, overdue: dict[int, ProducerEntry], offset: int) -> None:
        """Restore overdue producers with batches before `offset`: recovery reloads snapshots, which lack them."""
        for producer_id, entry in overdue.items():
            if producer_id not in self.producers and entry.batches and entry.batches[-1].last_offset < offset:
                self.overdue.setdefault(producer_id, entry)

    def _rows(self) -> list[SnapshotRow]:
        """Return one row per producer, in the iteration order of a Java HashMap."""
        rows = []
        for producer_id in java_hash_map_order(self.producers, self._table_size):
            entry = self.producers[producer_id]
            last = entry.batches[-1] if entry.batches else BatchMetadata(NO_SEQUENCE, NO_OFFSET, 0, -1)
            rows.append(
                SnapshotRow(
                    producer_id,
                    entry.epoch,
                    last.last_sequence,
                    last.last_offset,
                    last.offset_delta,
                    entry.last_timestamp,
                    entry.coordinator_epoch,
                    entry.txn_first_offset,
                )
            )
        return rows

    def _clear(self) -> None:
        self.producers = {}
        self.overdue.clear()
        self.open_transactions.load(())

    def _remove_snapshot(self, offset: int) -> None:
        self.snapshot_offsets.discard(offset)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path(offset))

    def _path(self, offset: int) -> Path:
        return self._directory / file_name(offset, SNAPSHOT_SUFFIX)

    def _refuse_epoch(self, entry: ProducerEntry, epoch: int) -> NoReturn:
        raise self._refusal(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"producer {entry.producer_id} has epoch {epoch}, the last seen is {entry.epoch}",
        )

    def _refusal(self, code: ErrorCode, reason: str) -> BrokerError:
        return BrokerError(code, f"{self._topic_partition}: {reason}")


def _list_snapshots(directory: Path) -> list[int]:
    offsets = []
    for name in os.listdir(directory):
        parsed = parse_file_name(name)
        if parsed is not None and parsed.kind is FileKind.SNAPSHOT and not parsed.stage:
            offsets.append(parsed.offset)
    return offsets
