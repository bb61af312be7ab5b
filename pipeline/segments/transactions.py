"""Aborted transactions and the last stable offset of a log from its files, for kafka.isolation.level=read_committed.

Transaction indexes contain the aborted transactions. The first offset of the oldest open transaction, which is the last
stable offset, follows from the newest readable producer snapshot and the batch headers after it (without a snapshot,
from all headers).
"""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path

from barnabas.broker.storage.files.errors import CorruptFileError
from barnabas.broker.storage.files.file_names import FileKind
from barnabas.broker.storage.index.transaction_index import AbortedTxn, iter_rows
from barnabas.broker.storage.producers.snapshot import decode_snapshot
from barnabas.pipeline.segments.directories import SegmentDirectory
from barnabas.pipeline.segments.files import read_all
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.layout import MAGIC_POSITION, MAGIC_V2

logger = logging.getLogger(__name__)


def aborted_transactions(directory: SegmentDirectory) -> list[AbortedTxn]:
    """Return all entries of the transaction indexes. Raises OSError."""
    found: list[AbortedTxn] = []
    for segment in directory.segments:
        entry = segment.neighbours.get(FileKind.TRANSACTION_INDEX)
        if entry is not None:
            # Deleted with its segment: brokers remove the `.log` before its indexes.
            with contextlib.suppress(FileNotFoundError):
                found += iter_rows(read_all(segment.system, entry.path, entry.size_bytes))
    return found


def last_stable_offset(directory: SegmentDirectory, end: int) -> int:
    """Return the first offset of the oldest open transaction, or `end` without one. Raises OSError."""
    begun, covered = _at_snapshot(directory)
    for segment, next_segment in zip(directory.segments, [*directory.segments[1:], None], strict=True):
        if next_segment is not None and next_segment.base_offset <= covered:
            continue
        for data in segment.batches(segment.position_for(covered), covered):
            if data[MAGIC_POSITION] != MAGIC_V2:
                continue
            batch = RecordBatch(data)
            if batch.is_transactional and batch.is_control:
                begun.pop(batch.producer_id, None)
            elif batch.is_transactional:
                begun.setdefault(batch.producer_id, batch.base_offset)
    return min([end, *begun.values()])


def _at_snapshot(directory: SegmentDirectory) -> tuple[dict[int, int], int]:
    """Return (producer id -> first offset of its open transaction, the offset up to which this holds)."""
    for offset, entry in sorted(directory.snapshots.items(), reverse=True):
        try:
            rows = decode_snapshot(read_all(directory.system, entry.path, entry.size_bytes), Path(entry.path))
        except (CorruptFileError, FileNotFoundError) as error:
            logger.warning("unreadable, headers are read instead: %s", error)
            continue
        return {row.producer_id: row.txn_first_offset for row in rows if row.txn_first_offset >= 0}, offset
    return {}, directory.earliest
