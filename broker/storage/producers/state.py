"""What a log knows of its producers: which batches it has, so that a repeat is not stored twice and a gap is refused.

Per producer id: its epoch, and its last five batches. A batch with the same epoch and sequences as one of them is a
repeat: it gets the old offsets. Otherwise its first sequence must follow the last one; sequences wrap from 2^31 - 1 to
0; a new epoch begins at 0; a producer without state (new, expired, deleted with its records) may begin anywhere.
Open transactions are kept too: they bound the last stable offset. A transaction opens with a producer's first
transactional batch and ends with the marker of its coordinator, whose epoch may be higher than the data's; a marker
without an open transaction changes the epochs alone. Of an aborted one the segment that holds the marker gets a row in
its transaction index.

Snapshots make a restart cheap: one at every roll, at close and during recovery, named by the offset that it covers
(exclusive), and only if that is past the last one's. They keep one batch per producer.
A producer is forgotten when it was silent for producer.id.expiration.ms. Kafka counts from its last record's timestamp,
so one who copies old records is forgotten while it writes. Here it goes from `producers`, which is what Kafka's state
has and what snapshots hold byte for byte, to `overdue`, in memory only: its repeats are known there until the wall
clock of its last append is as old. A load takes for that when the segment with its last batch was last written
(producer_rebuild).
The caller serializes all calls (PartitionLog's lock). Source: Kafka ProducerStateManager, ProducerAppendInfo.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable
from pathlib import Path

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
    MAX_SEQUENCE,
    NO_EPOCH,
    NO_OFFSET,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    REMEMBERED_BATCHES,
    BatchMetadata,
    LastRecord,
    ProducerEntry,
)
from barnabas.broker.storage.producers.expiration import ProducerExpiration
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


class ProducerState:
    """The producers of one log, and its snapshot files."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        directory: Path,
        expiration: ProducerExpiration,
        snapshot_offsets: set[int] | None = None,
        overdue: dict[int, ProducerEntry] | None = None,
    ) -> None:
        """`snapshot_offsets`: of the snapshots in the directory, kept true from now on; None asks the directory.

        A recovery, which has a state for each segment, gives all of them the same `overdue`: no snapshot holds those.
        """
        self.producers: dict[int, ProducerEntry] = {}
        self.overdue: dict[int, ProducerEntry] = {} if overdue is None else overdue
        """Whom Kafka would have forgotten by its records' timestamps, and who has written lately; none is in both."""
        self.map_end_offset = 0
        """The state is that of a log that ends here."""
        self.last_snapshot_offset = 0
        self._topic_partition = topic_partition
        self._directory = directory
        self._expiration = expiration
        self._open_transactions: dict[int, int] = {}
        """First offset -> producer id."""
        self._table_size = _MIN_TABLE_SIZE
        self.snapshot_offsets = set(_list_snapshots(directory)) if snapshot_offsets is None else snapshot_offsets

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest open transaction began."""
        return min(self._open_transactions) if self._open_transactions else None

    def last_records(self) -> dict[int, LastRecord]:
        """By producer id: whose batches compaction must not lose even when it empties them."""
        return {
            entry.producer_id: LastRecord(entry.batches[-1].last_offset if entry.batches else NO_OFFSET, entry.epoch)
            for entry in self.producers.values()
        }

    @property
    def is_empty(self) -> bool:
        """Whether no producer is known."""
        return not self.producers

    def check_batch(self, producer_id: int, epoch: int, base_sequence: int, offset_delta: int) -> BatchMetadata | None:
        """The stored batch of which this one is a repeat, or None if it is new and may be stored.

        Raises BrokerError INVALID_PRODUCER_EPOCH (47) for an old epoch, OUT_OF_ORDER_SEQUENCE_NUMBER (45) for a gap.
        """
        entry = self.producers.get(producer_id) or self.overdue.get(producer_id)
        if entry is None:
            return None
        if epoch == entry.epoch:
            last_sequence = (base_sequence + offset_delta) & MAX_SEQUENCE
            for batch in entry.batches:
                if batch.last_sequence == last_sequence and batch.first_sequence == base_sequence:
                    return batch
            expected = (entry.last_sequence + 1) & MAX_SEQUENCE
            if base_sequence != expected:
                raise self._refusal(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"producer {producer_id} sent sequence {base_sequence}, expected is {expected}",
                )
        elif epoch < entry.epoch:
            raise self._refusal(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id} has epoch {epoch}, the last seen is {entry.epoch}",
            )
        elif base_sequence != 0:
            raise self._refusal(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id} begins epoch {epoch} with sequence {base_sequence}, not 0",
            )
        if entry.txn_first_offset != NO_OFFSET:
            raise self._refusal(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {producer_id} sent a batch of no transaction, one is open since {entry.txn_first_offset}",
            )
        return None

    def check_marker(self, producer_id: int, epoch: int, marker: EndMarker) -> None:
        """Whether a coordinator may write this marker.

        Raises BrokerError INVALID_PRODUCER_EPOCH (47) for an old epoch, TRANSACTION_COORDINATOR_FENCED (52) for that of
        a coordinator that was replaced. A marker of the producer's present epoch is accepted, open transaction or not:
        with the protocol before KIP-890 it is the usual one, and with that it is a repeat.
        """
        entry = self.producers.get(producer_id)
        if entry is None:
            return
        if epoch < entry.epoch:
            raise self._refusal(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id} has epoch {epoch} in a marker, the last seen is {entry.epoch}",
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
    ) -> None:
        """Remember a data batch that is in the log; nothing is refused here (a replay must not fail).

        `timestamp` is the records' largest, `appended_ms` the wall clock when it was stored, if that is known.
        """
        entry = self._entry(producer_id, epoch)
        last_sequence = (base_sequence + offset_delta) & MAX_SEQUENCE if base_sequence >= 0 else NO_SEQUENCE
        if len(entry.batches) == REMEMBERED_BATCHES:
            del entry.batches[0]
        entry.batches.append(BatchMetadata(last_sequence, last_offset, offset_delta, timestamp))
        entry.last_timestamp = timestamp
        entry.last_append_ms = appended_ms
        if is_transactional and entry.txn_first_offset == NO_OFFSET:
            entry.txn_first_offset = last_offset - offset_delta
            self._open_transactions[entry.txn_first_offset] = producer_id

    def note_data(self, batch: RecordBatch | ProducerBatch, *, appended_ms: int = NO_TIMESTAMP) -> None:
        """As `note_batch`, of a stored batch or what a scan says of one."""
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
        """The transaction index row of a marker at `offset` that was not noted yet; None where it makes none."""
        entry = self.producers.get(producer_id)
        if marker.is_commit or entry is None or entry.txn_first_offset == NO_OFFSET:
            return None
        others = (first for first, owner in self._open_transactions.items() if owner != producer_id)
        return AbortedTxn(VERSION, producer_id, entry.txn_first_offset, offset, min(others, default=offset + 1))

    def note_marker(self, producer_id: int, epoch: int, marker: EndMarker, timestamp: int) -> None:
        """Remember a transaction's end marker that is in the log; ask `aborted_by` first."""
        entry = self._entry(producer_id, epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = timestamp
        if entry.txn_first_offset != NO_OFFSET:
            self._open_transactions.pop(entry.txn_first_offset, None)
            entry.txn_first_offset = NO_OFFSET

    def remove_expired(self, now_ms: int) -> int:
        """Forget producers that have been silent for too long; how many."""
        before = len(self.producers) + len(self.overdue)
        for producer_id in [each.producer_id for each in self.producers.values() if self._is_expired(each, now_ms)]:
            self.overdue[producer_id] = self.producers.pop(producer_id)
        for producer_id in [each.producer_id for each in self.overdue.values() if self._is_silent(each, now_ms)]:
            del self.overdue[producer_id]
        return before - len(self.producers) - len(self.overdue)

    def take_snapshot(self, *, durably: bool) -> Path | None:
        """Write the state as of `map_end_offset`; None when there is one of it already. Raises OSError."""
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
        """Take the state of the newest snapshot in (log start, log end], if any; delete the others. Raises OSError.

        `written_ms` gives the latest time (wall clock) at which the batch that ends at an offset can have been stored.
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
            self._keep_overdue(overdue, offset)
            self.map_end_offset = self.last_snapshot_offset = offset
            return
        self.map_end_offset = self.last_snapshot_offset = log_start_offset

    def truncate_fully(self, offset: int) -> None:
        """The log begins anew at `offset`: forget everything, delete all snapshots. Raises OSError."""
        self._clear()
        for snapshot in sorted(self.snapshot_offsets):
            self._remove_snapshot(snapshot)
        self.last_snapshot_offset = 0
        self.map_end_offset = offset

    def on_log_start_moved(self, log_start_offset: int) -> None:
        """The log start offset went up."""
        self.map_end_offset = max(self.map_end_offset, log_start_offset)
        self.last_snapshot_offset = max(self.snapshot_offsets, default=log_start_offset)

    def remove_stray_snapshots(self, base_offsets: set[int]) -> None:
        """Delete snapshots that belong to no segment, but keep a last one above all segments. Raises OSError."""
        strays = sorted(self.snapshot_offsets - base_offsets)
        if strays and (not base_offsets or strays[-1] > max(base_offsets)):
            strays.pop()
        for offset in strays:
            self._remove_snapshot(offset)

    def mark_snapshot_deleted(self, offset: int) -> Path | None:
        """Rename the snapshot at `offset` to `.deleted`, because its segment goes; its new path. Raises OSError."""
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
        """The partition's directory was renamed."""
        self._directory = directory

    def exchange_files(self, other: ProducerState) -> None:
        """Change directory and snapshots with the state of a log that holds the same records; the producers stay."""
        self._directory, other._directory = other._directory, self._directory
        self.snapshot_offsets, other.snapshot_offsets = other.snapshot_offsets, self.snapshot_offsets
        self.last_snapshot_offset, other.last_snapshot_offset = other.last_snapshot_offset, self.last_snapshot_offset

    def _entry(self, producer_id: int, epoch: int) -> ProducerEntry:
        entry = self.producers.get(producer_id)
        if entry is None:
            entry = self.overdue.pop(producer_id, None)
            if entry is None:
                return self._add(ProducerEntry(producer_id, epoch))
            entry.coordinator_epoch = NO_EPOCH  # as one that begins
            self._add(entry).move_to_epoch(epoch)
        else:
            entry.move_to_epoch(epoch)
        return entry

    def _add(self, entry: ProducerEntry) -> ProducerEntry:
        self.producers[entry.producer_id] = entry
        while len(self.producers) * 100 > self._table_size * _LOAD_FACTOR_PERCENT:
            self._table_size *= 2
        return entry

    def _is_expired(self, entry: ProducerEntry, now_ms: int) -> bool:
        """Whether Kafka forgets it."""
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
        if entry.txn_first_offset != NO_OFFSET:
            self._open_transactions[entry.txn_first_offset] = row.producer_id

    def _keep_overdue(self, overdue: dict[int, ProducerEntry], offset: int) -> None:
        """A recovery reloads its own snapshots, which do not hold them; what they wrote before `offset` stays so."""
        for producer_id, entry in overdue.items():
            if producer_id not in self.producers and entry.batches and entry.batches[-1].last_offset < offset:
                self.overdue.setdefault(producer_id, entry)

    def _rows(self) -> list[SnapshotRow]:
        """One row per producer, in the order of a Java HashMap."""
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
        self._open_transactions = {}

    def _remove_snapshot(self, offset: int) -> None:
        self.snapshot_offsets.discard(offset)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path(offset))

    def _path(self, offset: int) -> Path:
        return self._directory / file_name(offset, SNAPSHOT_SUFFIX)

    def _refusal(self, code: ErrorCode, reason: str) -> BrokerError:
        return BrokerError(code, f"{self._topic_partition}: {reason}")


def _list_snapshots(directory: Path) -> list[int]:
    offsets = []
    for name in os.listdir(directory):
        parsed = parse_file_name(name)
        if parsed is not None and parsed.kind is FileKind.SNAPSHOT and not parsed.stage:
            offsets.append(parsed.offset)
    return offsets
