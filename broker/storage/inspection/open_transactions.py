"""Open transactions of a partition, read from its files without changing them, after a clean or unclean stop.

Starts with the newest readable producer snapshot and reads the batches after it, as recovery does. A transaction is
open from its producer's first transactional batch to an end marker. Reading ends at the first damaged batch, because
recovery truncates there. Source: Kafka ProducerStateManager.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.inspection.file_types import FileType, KnownFile, known_files
from barnabas.broker.storage.inspection.log_walk import LogWalk, StoredBatch
from barnabas.broker.storage.producers.snapshot import decode_snapshot
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.end_marker import decode_end_marker
from barnabas.protocol.records.reader import read_records

_NO_EPOCH = -1

logger = logging.getLogger(__name__)


class OpenTransaction(NamedTuple):
    """An open transaction: its first offset, and epochs and timestamp (ms) of its producer's last batch or marker."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    first_offset: int
    last_timestamp: int


def open_transactions(directory: Path) -> list[OpenTransaction]:
    """Return the open transactions of a partition directory, by first offset. Raises OSError."""
    files = [known for known in known_files(directory) if not known.stage]
    end, found, epochs = _newest_snapshot(files)
    for batch in _batches_after(files, end):
        if batch.producer_id < 0 or not batch.is_transactional:
            continue
        if not batch.is_control:
            before = found.get(batch.producer_id)
            first = batch.base_offset if before is None else before.first_offset
            coordinator = epochs.get(batch.producer_id, _NO_EPOCH)
            found[batch.producer_id] = OpenTransaction(
                batch.producer_id, batch.producer_epoch, coordinator, first, batch.max_timestamp
            )
        else:
            found.pop(batch.producer_id, None)
            epochs[batch.producer_id] = _coordinator_epoch(batch)
    return sorted(found.values(), key=lambda transaction: transaction.first_offset)


def _newest_snapshot(files: list[KnownFile]) -> tuple[int, dict[int, OpenTransaction], dict[int, int]]:
    """Return the newest snapshot's offset, its open transactions and coordinator epochs; (0, {}, {}) without one."""
    snapshots = sorted(
        (known for known in files if known.type is FileType.PRODUCER_SNAPSHOT), key=lambda known: -known.offset
    )
    for known in snapshots:
        try:
            rows = decode_snapshot(known.path.read_bytes(), known.path)
        except CorruptFileError as error:
            logger.info("skipping a producer snapshot: %s", error)
            continue
        opened = {
            row.producer_id: OpenTransaction(
                row.producer_id, row.producer_epoch, row.coordinator_epoch, row.txn_first_offset, row.timestamp
            )
            for row in rows
            if row.txn_first_offset >= 0
        }
        return known.offset, opened, {row.producer_id: row.coordinator_epoch for row in rows}
    return 0, {}, {}


def _batches_after(files: list[KnownFile], offset: int) -> Iterator[RecordBatch]:
    logs = sorted((known for known in files if known.type is FileType.LOG), key=lambda known: known.offset)
    for index, known in enumerate(logs):
        if index + 1 < len(logs) and logs[index + 1].offset <= offset:
            continue
        for step in LogWalk(known.path):
            if step.fault is not None:
                return
            if isinstance(step, StoredBatch) and step.batch.base_offset >= offset:
                yield step.batch


def _coordinator_epoch(batch: RecordBatch) -> int:
    try:
        record = read_records(batch)[0]
        return decode_end_marker(record.key, record.value).coordinator_epoch
    except (DecodeError, IndexError):
        return _NO_EPOCH
